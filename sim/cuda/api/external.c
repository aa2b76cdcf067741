/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another interface. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/ipc.h"

/*
 * Memory of another interface. The simulated card has no other interface that could have taken it: by a descriptor of
 * anything it is taken here, and one of created memory stands for what another process took.
 */
struct CUextMemory_st {
	struct device *device;
	struct context *context;
	uint64_t bytes, taken_bytes;
	bool is_kept;
	struct machine_kept kept;
};

/* A hold of what a descriptor keeps. False: it is of something else. */
static bool hold(CUexternalMemory made, int fd)
{
	uint32_t index, generation;
	LOCK_SCOPE(&driver.memory_lock);

	made->is_kept = machine_kept_of_descriptor(driver.machine, fd, &index, &generation) == 0 &&
			ipc_hold(index, generation, false, &made->kept);
	return made->is_kept;
}

static void drop(CUexternalMemory made)
{
	LOCK_SCOPE(&driver.memory_lock);

	ipc_drop(made->kept.index);
}

ENTRY_CURRENT(cuImportExternalMemory,
	(CUexternalMemory * memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description),
	(memory, description))
{
	uint64_t chunk = driver.board->chunk_bytes;
	CUexternalMemory made;

	if (!memory || !description || description->size == 0 ||
		description->size > driver.board->total_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (fcntl(description->handle.fd, F_GETFD) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->device = context->device;
	made->context = context;
	made->bytes = description->size;
	made->taken_bytes = (description->size + chunk - 1) / chunk * chunk;
	if (!hold(made, description->handle.fd) && machine_grow(driver.machine, made->device->index,
							   MACHINE_VMM, made->taken_bytes) != 0) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (made->is_kept && made->kept.bytes != made->bytes) {
		drop(made);
		free(made);
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* The driver owns it from now on. */
	close(description->handle.fd);
	*memory = made;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuExternalMemoryGetMappedBuffer,
	(CUdeviceptr * dptr, CUexternalMemory memory,
		const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description),
	(dptr, memory, description))
{
	struct ticket ticket = {.magic = TICKET_MAGIC};
	bool is_open;

	if (!dptr || !memory || !description || description->size == 0 ||
		description->offset > memory->bytes ||
		description->size > memory->bytes - description->offset)
		return CUDA_ERROR_INVALID_VALUE;
	ticket.bytes = description->size;
	LOCK_SCOPE(&driver.memory_lock);
	is_open = ipc_open(memory->context, memory->device, &ticket, false, dptr);
	return is_open ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY_BODY(cuDestroyExternalMemory, (CUexternalMemory memory), (memory))
{
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	if (memory->is_kept)
		drop(memory);
	else
		machine_shrink(
			driver.machine, memory->device->index, MACHINE_VMM, memory->taken_bytes);
	free(memory);
	return CUDA_SUCCESS;
}

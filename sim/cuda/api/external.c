/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another interface. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/ipc.h"

/*
 * Memory of another interface, by a descriptor of anything: the simulated card has no other interface
 * that could have taken it, so it is taken here.
 */
struct CUextMemory_st {
	struct device *device;
	struct context *context;
	uint64_t bytes, taken_bytes;
};

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
	if (machine_grow(driver.machine, made->device->index, MACHINE_VMM, made->taken_bytes) !=
		0) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
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
	machine_shrink(driver.machine, memory->device->index, MACHINE_VMM, memory->taken_bytes);
	free(memory);
	return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another interface. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/ipc.h"

/*
 * Memory of another interface. The simulated card has no other interface that could have taken it: by a descriptor of
 * anything it is taken here, and one of created memory stands for what another process took. Its handle is refused when
 * it has ended, until the next has it. Under memory_lock.
 */
#define EXTERNAL_MAGIC 0x45585431u
struct CUextMemory_st {
	uint32_t magic; /* 0 once destroyed */
	struct device *device;
	struct context *context;
	uint64_t bytes, taken_bytes;
	bool is_kept;
	struct machine_kept kept;
	struct relic relic;
	struct CUextMemory_st *next_spare;
};
static struct CUextMemory_st *spare;

static CUexternalMemory check(CUexternalMemory memory)
{
	return memory && memory->magic == EXTERNAL_MAGIC ? memory : NULL;
}

static CUexternalMemory take(void)
{
	struct CUextMemory_st *made = spare;
	struct relic relic;

	if (!made) {
		made = calloc(1, sizeof(*made));
		if (made)
			driver_keep_relic(&made->relic);
		return made;
	}
	spare = made->next_spare;
	relic = made->relic;
	*made = (struct CUextMemory_st){.relic = relic};
	return made;
}

static void give_back(CUexternalMemory made)
{
	made->magic = 0;
	made->next_spare = spare;
	spare = made;
}

/* A hold of what a descriptor keeps. False: it is of something else. */
static bool hold(CUexternalMemory made, int fd)
{
	uint32_t index, generation;

	made->is_kept = machine_kept_of_descriptor(driver.machine, fd, &index, &generation) == 0 &&
			ipc_hold(index, generation, false, &made->kept);
	return made->is_kept;
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
	LOCK_SCOPE(&driver.memory_lock);
	made = take();
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->device = context->device;
	made->context = context;
	made->bytes = description->size;
	made->taken_bytes = (description->size + chunk - 1) / chunk * chunk;
	if (!hold(made, description->handle.fd) && machine_grow(driver.machine, made->device->index,
							   MACHINE_VMM, made->taken_bytes) != 0) {
		give_back(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (made->is_kept && made->kept.bytes != made->bytes) {
		ipc_drop(made->kept.index);
		give_back(made);
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* The driver owns it from now on. */
	close(description->handle.fd);
	made->magic = EXTERNAL_MAGIC;
	*memory = made;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuExternalMemoryGetMappedBuffer,
	(CUdeviceptr * dptr, CUexternalMemory memory,
		const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description),
	(dptr, memory, description))
{
	struct ticket ticket = {.magic = 0};
	bool is_open;

	LOCK_SCOPE(&driver.memory_lock);
	if (!dptr || !check(memory) || !description || description->size == 0 ||
		description->offset > memory->bytes ||
		description->size > memory->bytes - description->offset)
		return CUDA_ERROR_INVALID_VALUE;
	ticket.bytes = description->size;
	is_open = ipc_open(memory->context, memory->device, &ticket, false, dptr);
	return is_open ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY_BODY(cuDestroyExternalMemory, (CUexternalMemory memory), (memory))
{
	LOCK_SCOPE(&driver.memory_lock);
	if (!check(memory))
		return CUDA_ERROR_INVALID_VALUE;
	if (memory->is_kept)
		ipc_drop(memory->kept.index);
	else
		machine_shrink(
			driver.machine, memory->device->index, MACHINE_VMM, memory->taken_bytes);
	give_back(memory);
	return CUDA_SUCCESS;
}

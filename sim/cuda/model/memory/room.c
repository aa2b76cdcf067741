/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that stays with a context until it ends, such as room for frames of threads. */
#include "sim/cuda/model/memory/room.h"

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"

CUresult room_keep(struct context *context, enum machine_kind kind, uint64_t bytes)
{
	if (bytes == 0)
		return CUDA_SUCCESS;
	if (machine_grow(driver.machine, context->device->index, kind, bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->kept_bytes[kind] += bytes;
	return CUDA_SUCCESS;
}

void room_let_go(struct context *context, enum machine_kind kind, uint64_t bytes)
{
	machine_shrink(driver.machine, context->device->index, kind, bytes);
	context->kept_bytes[kind] -= bytes;
}

/* Room for every thread that the device can run at once. */
static uint64_t room_bytes(uint64_t frame_bytes)
{
	uint64_t unit = driver.board->chunk_bytes;
	uint64_t threads =
		(uint64_t)driver.board->sm_count * (uint64_t)driver.board->max_threads_per_sm;

	return (frame_bytes * threads + unit - 1) / unit * unit;
}

/* Under memory_lock. */
static CUresult set_frame(struct context *context, uint64_t frame_bytes)
{
	uint64_t first = room_bytes(CONTEXT_FIRST_FRAME_BYTES);
	uint64_t wanted = room_bytes(frame_bytes);
	uint64_t kept = context->kept_bytes[MACHINE_LOCAL];
	CUresult result = CUDA_SUCCESS;

	wanted = wanted > first ? wanted - first : 0;
	if (wanted > kept)
		result = room_keep(context, MACHINE_LOCAL, wanted - kept);
	else
		room_let_go(context, MACHINE_LOCAL, kept - wanted);
	if (result == CUDA_SUCCESS)
		context_set_limit(context, CU_LIMIT_STACK_SIZE, frame_bytes);
	return result;
}

CUresult room_make_local(struct context *context, uint64_t frame_bytes)
{
	CUresult result = CUDA_SUCCESS;

	if (frame_bytes <= context_limit(context, CU_LIMIT_STACK_SIZE))
		return CUDA_SUCCESS;
	LOCK_SCOPE(&driver.memory_lock);
	if (frame_bytes > context_limit(context, CU_LIMIT_STACK_SIZE))
		result = set_frame(context, frame_bytes);
	return result;
}

CUresult room_set_local(struct context *context, uint64_t frame_bytes)
{
	LOCK_SCOPE(&driver.memory_lock);
	return set_frame(context, frame_bytes);
}

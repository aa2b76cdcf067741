/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a program gives to a stream: done now, or captured. */
#include "sim/cuda/model/context/submit.h"

#include <stdint.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/model/memory/fill.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/cuda/model/time/callback.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * With is_waiting the call returns when the work would be done, unless it never leaves the device: such
 * copies are asynchronous in the real driver too.
 */
static CUresult submit(struct stream *stream, bool is_waiting, const struct work *work)
{
	uint64_t duration_ns, end;
	bool is_busy;
	CUresult result;

	if (capture_is_on(stream))
		return capture_add(stream, work);
	result = work_run(work, stream->context->device, &duration_ns, &is_busy);
	if (result != CUDA_SUCCESS)
		return result;
	result = timeline_add(stream, duration_ns, is_busy, &end);
	if (result == CUDA_SUCCESS && is_waiting && !is_busy)
		timeline_sleep_until(stream->context, end);
	return result;
}

CUresult submit_copy(CUstream handle, bool is_thread, bool is_waiting, const struct copy *copy)
{
	struct work work = work_of(CU_GRAPH_NODE_TYPE_MEMCPY);
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &stream);

	work.copy = *copy;
	return result == CUDA_SUCCESS ? submit(stream, is_waiting, &work) : result;
}

static CUresult read_copy(const CUDA_MEMCPY3D *request, struct copy *ret_copy)
{
	LOCK_SCOPE(&driver.memory_lock);
	return copy_from_request(request, ret_copy);
}

CUresult submit_copy_3d(
	CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY3D *request)
{
	struct copy copy;
	CUresult result = read_copy(request, &copy);

	return result == CUDA_SUCCESS ? submit_copy(handle, is_thread, is_waiting, &copy) : result;
}

CUresult submit_fill(CUstream handle, bool is_thread, const struct fill *fill)
{
	struct work work = work_of(CU_GRAPH_NODE_TYPE_MEMSET);
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &stream);

	work.fill = *fill;
	return result == CUDA_SUCCESS ? submit(stream, false, &work) : result;
}

static bool are_valid(const struct launch_size *size)
{
	uint64_t threads = (uint64_t)size->block[0] * size->block[1];

	for (int i = 0; i < 3; i++) {
		if (size->grid[i] == 0 || size->block[i] == 0)
			return false;
	}
	return size->block[0] <= 1024 && size->block[1] <= 1024 && size->block[2] <= 64 &&
	       threads * size->block[2] <= 1024 && size->grid[0] <= INT32_MAX &&
	       size->grid[1] <= 65535 && size->grid[2] <= 65535 &&
	       size->shared_bytes <= driver.board->shared_optin_bytes;
}

static CUresult capture(struct stream *stream, CUfunction function, const struct launch_size *size,
	void **params, void **extra)
{
	CUkernel kernel = kernel_is_of_library(function) ? (CUkernel)function : NULL;
	CUDA_KERNEL_NODE_PARAMS_v2 wanted = {kernel ? NULL : function, size->grid[0], size->grid[1],
		size->grid[2], size->block[0], size->block[1], size->block[2], size->shared_bytes,
		params, extra, kernel, NULL};
	struct work work;
	CUresult result = work_kernel(&wanted, &work);

	return result == CUDA_SUCCESS ? capture_add(stream, &work) : result;
}

/*
 * A function is of one context, and is refused elsewhere, as programs report of it ("invalid resource handle"); a kernel is loaded into the
 * stream's.
 */
static CUresult find_place(
	const struct kernel *kernel, const struct stream *stream, struct context **ret_context)
{
	const struct module *module = kernel->module;

	*ret_context = module->is_library ? stream->context : module->context;
	return *ret_context == stream->context || driver.board->launches_elsewhere
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_HANDLE;
}

CUresult submit_kernel(bool is_thread, CUfunction function, const struct launch_size *size,
	CUstream handle, void **params, void **extra)
{
	struct kernel *kernel = kernel_check(function);
	struct context *context;
	struct stream *stream;
	uint64_t end;
	CUresult result = context_stream(handle, is_thread, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	result = kernel ? find_place(kernel, stream, &context) : CUDA_ERROR_INVALID_HANDLE;
	if (result != CUDA_SUCCESS)
		return result;
	if (!are_valid(size) || (params && extra))
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->image && kernel->image->param_count > 0 && !params && !extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_is_on(stream))
		return capture(stream, function, size, params, extra);
	result = kernel_make_ready(kernel, context);
	if (result == CUDA_SUCCESS)
		result = room_make_local(context, kernel_frame_bytes(kernel));
	if (result == CUDA_SUCCESS)
		result = timeline_add(stream, kernel_duration(kernel, params, extra), true, &end);
	if (result != CUDA_SUCCESS)
		return result;
	/* Relaxed: see context_fault(). */
	if (kernel->image && kernel->image->has_fault)
		atomic_store_explicit(
			&stream->context->fault, CUDA_ERROR_ILLEGAL_ADDRESS, memory_order_relaxed);
	if (driver.does_block)
		callback_wait_all(stream->context, stream);
	return CUDA_SUCCESS;
}

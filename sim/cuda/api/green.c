/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/green.h"
#include "sim/cuda/model/time/timeline.h"

#define DESC_MAGIC 0x44534331u

/* Never freed: the interface has no call for it. */
struct desc {
	uint32_t magic;
	unsigned int sm_count;
	struct relic relic;
};

/* How many multiprocessors go together, by the documented table. */
static unsigned int group_size(unsigned int flags)
{
	int major = driver.board->compute_major;

	if (major >= 9)
		return (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0 ? 2 : 8;
	return major == 8 ? 4 : 2;
}

static void set_resource(CUdevResource *resource, unsigned int sm_count)
{
	memset(resource, 0, sizeof(*resource));
	if (sm_count == 0)
		return;
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	resource->sm.smCount = sm_count;
	resource->sm.minSmPartitionSize = group_size(0);
	resource->sm.smCoscheduledAlignment = group_size(0);
}

static CUresult get_resource(CUdevResource *resource, CUdevResourceType type, unsigned int sm_count)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	set_resource(resource, sm_count);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceGetDevResource,
	(CUdevice device, CUdevResource *resource, CUdevResourceType type),
	(device, resource, type))
{
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return get_resource(resource, type, (unsigned int)driver.board->sm_count);
}

ENTRY_BODY(cuCtxGetDevResource, (CUcontext handle, CUdevResource *resource, CUdevResourceType type),
	(handle, resource, type))
{
	struct context *context;
	CUresult result = context_check_itself(handle, &context);

	if (result != CUDA_SUCCESS)
		return result;
	return get_resource(resource, type,
		context->green ? context->green->sm_count : (unsigned int)driver.board->sm_count);
}

ENTRY_BODY(cuGreenCtxGetDevResource,
	(CUgreenCtx handle, CUdevResource *resource, CUdevResourceType type),
	(handle, resource, type))
{
	struct green *green = green_check(handle);

	return green ? get_resource(resource, type, green->sm_count) : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuDevSmResourceSplitByCount,
	(CUdevResource * groups, unsigned int *count, const CUdevResource *input,
		CUdevResource *remaining, unsigned int flags, unsigned int least),
	(groups, count, input, remaining, flags, least))
{
	unsigned int size, most;

	if (!count || !input || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	if (input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	size = group_size(flags);
	if (least > size)
		size = (least + size - 1) / size * size;
	if (least > input->sm.smCount || size > input->sm.smCount)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	most = input->sm.smCount / size;
	if (!groups || *count > most)
		*count = most;
	for (unsigned int i = 0; groups && i < *count; i++)
		set_resource(&groups[i], size);
	if (remaining)
		set_resource(remaining, input->sm.smCount - *count * size);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDevResourceGenerateDesc,
	(CUdevResourceDesc * ret_desc, CUdevResource *resources, unsigned int count),
	(ret_desc, resources, count))
{
	unsigned int sm_count = 0;
	struct desc *desc;

	if (!ret_desc || !resources || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		sm_count += resources[i].sm.smCount;
	}
	if (sm_count > (unsigned int)driver.board->sm_count)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	desc = calloc(1, sizeof(*desc));
	if (!desc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	desc->magic = DESC_MAGIC;
	driver_keep_relic(&desc->relic);
	desc->sm_count = sm_count;
	*ret_desc = (CUdevResourceDesc)desc;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGreenCtxCreate,
	(CUgreenCtx * green, CUdevResourceDesc desc_handle, CUdevice ordinal, unsigned int flags),
	(green, desc_handle, ordinal, flags))
{
	struct desc *desc = (struct desc *)desc_handle;
	struct device *device = driver_device(ordinal);

	if (!green || !desc || desc->magic != DESC_MAGIC || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	return green_new(device, desc->sm_count, (struct green **)green);
}

ENTRY_BODY(cuGreenCtxDestroy, (CUgreenCtx handle), (handle))
{
	struct green *green;

	LOCK_SCOPE(&driver.memory_lock);
	green = green_check(handle);
	if (!green)
		return CUDA_ERROR_INVALID_HANDLE;
	green_end(green);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx handle), (context, handle))
{
	struct green *green = green_check(handle);

	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green)
		return CUDA_ERROR_INVALID_HANDLE;
	*context = (CUcontext)green->context;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGreenCtxGetId, (CUgreenCtx handle, unsigned long long *id), (handle, id))
{
	struct green *green = green_check(handle);

	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green)
		return CUDA_ERROR_INVALID_HANDLE;
	*id = green->context->id;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGreenCtxStreamCreate,
	(CUstream * ret_stream, CUgreenCtx handle, unsigned int flags, int priority),
	(ret_stream, handle, flags, priority))
{
	struct green *green = green_check(handle);
	struct stream *stream;
	CUresult result;

	/* Its streams never order themselves with the legacy stream. */
	if (!ret_stream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green)
		return CUDA_ERROR_INVALID_HANDLE;
	result = context_new_stream(green->context->owner, flags, priority, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	stream->green = green;
	*ret_stream = (CUstream)stream;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuStreamGetGreenCtx, (CUstream handle, CUgreenCtx *ret_green), (handle, ret_green))
{
	struct stream *stream;
	CUresult result = context_stream(handle, false, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_green)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_green = (CUgreenCtx)green_of_stream(handle, stream);
	return CUDA_SUCCESS;
}

static CUresult record(struct context *context, struct green *green, CUevent handle)
{
	struct event *event = timeline_find_event(handle);
	uint64_t now = timeline_now(context->device), end;

	if (!event || event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	end = timeline_end_green(context, green);
	timeline_mark(event, end > now ? end : now);
	return CUDA_SUCCESS;
}

static CUresult wait(struct context *context, struct green *green, CUevent handle)
{
	struct event *event = timeline_find_event(handle);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	timeline_hold_green(context, green,
		timeline_carry(event->context->device, context->device, timeline_event_ns(event)));
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGreenCtxRecordEvent, (CUgreenCtx handle, CUevent event), (handle, event))
{
	struct green *green = green_check(handle);

	return green ? record(green->context->owner, green, event) : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuGreenCtxWaitEvent, (CUgreenCtx handle, CUevent event), (handle, event))
{
	struct green *green = green_check(handle);

	return green ? wait(green->context->owner, green, event) : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_BODY(cuCtxRecordEvent, (CUcontext handle, CUevent event), (handle, event))
{
	struct context *context;
	CUresult result = context_check_itself(handle, &context);

	return result == CUDA_SUCCESS ? record(context->owner, context->green, event) : result;
}

ENTRY_BODY(cuCtxWaitEvent, (CUcontext handle, CUevent event), (handle, event))
{
	struct context *context;
	CUresult result = context_check_itself(handle, &context);

	return result == CUDA_SUCCESS ? wait(context->owner, context->green, event) : result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The primary context of a device, and the green ones that use it. */
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/context/green.h"
#include "sim/cuda/model/driver.h"

/* Under memory_lock. */
CUresult context_retain_primary(struct device *device)
{
	CUresult result = CUDA_SUCCESS;

	if (!device->primary)
		device->primary = context_make(device, true);
	if (!device->primary)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!context_is_alive(device->primary))
		result = context_activate(device->primary, device->primary_flags);
	if (result == CUDA_SUCCESS)
		device->primary_refs++;
	return result;
}

void context_release_primary(struct device *device)
{
	if (--device->primary_refs == 0 && context_is_alive(device->primary))
		context_end(device->primary);
}

CUresult context_new_green(struct device *device, struct green *green, struct context **ret_context)
{
	struct context *context;
	CUresult result = context_retain_primary(device);

	if (result != CUDA_SUCCESS)
		return result;
	context = context_make(device, false);
	if (!context) {
		context_release_primary(device);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context->owner = device->primary;
	context->green = green;
	/* Pairs with the acquire in context_is_alive(). */
	atomic_store_explicit(&context->is_alive, 1, memory_order_release);
	*ret_context = context;
	return CUDA_SUCCESS;
}

void context_end_green(struct context *context)
{
	/* Pairs with the acquire in context_is_alive(). */
	atomic_store_explicit(&context->is_alive, 0, memory_order_release);
	if (context->device->primary_refs > 0)
		context_release_primary(context->device);
	context_spare(context);
}

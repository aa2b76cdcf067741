/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: arrays and mipmapped arrays. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "tenant/memory/arrays.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/tiles.h"

/* Keeps an array that the driver has made, or lets it go again. */
static CUresult keep(CUresult r, CUarray made, struct array_plan *plan)
{
	if (r != CUDA_SUCCESS || arrays_keep(made, false, plan))
		return r;
	charge_let_go(&plan->charge, cuda.cuArrayDestroy(made));
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* An array by a description of this type: what it has beside a width, a height and a format is said behind. */
#define CREATE(symbol, type, ...)                                                      \
	HOOK_BODY(symbol, CUarray *, array, const type *, d)                           \
	{                                                                              \
		_cleanup_array_plan_ struct array_plan plan = {.charge = CHARGE_NULL}; \
		CUarray made = NULL;                                                   \
		CUresult r;                                                            \
		CURRENT_STAYS();                                                       \
                                                                                       \
		if (!array || !d)                                                      \
			return cuda.symbol(array, d);                                  \
		HOOK_COPY(d);                                                          \
		r = arrays_begin(&(CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,         \
					 .Height = d->Height,                          \
					 .Format = d->Format,                          \
					 .NumChannels = d->NumChannels,                \
					 __VA_ARGS__},                                 \
			0, &plan);                                                     \
		if (r == CUDA_SUCCESS)                                                 \
			r = cuda.symbol(&made, d);                                     \
		r = keep(r, made, &plan);                                              \
		return HOOK_GIVE(r, array, made);                                      \
	}

CREATE(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR)
CREATE(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1)
CREATE(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, .Depth = d->Depth, .Flags = d->Flags)
CREATE(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, .Depth = d->Depth, .Flags = d->Flags)

HOOK_BODY(cuMipmappedArrayCreate, CUmipmappedArray *, mipmap, const CUDA_ARRAY3D_DESCRIPTOR *,
	descriptor, unsigned int, level_count)
{
	_cleanup_array_plan_ struct array_plan plan = {.charge = CHARGE_NULL};
	CUmipmappedArray made = NULL;
	CUresult r;
	CURRENT_STAYS();

	if (!mipmap || !descriptor)
		return cuda.cuMipmappedArrayCreate(mipmap, descriptor, level_count);
	HOOK_COPY(descriptor);
	/* No levels are one to the driver. */
	r = arrays_begin(descriptor, level_count ? level_count : 1, &plan);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMipmappedArrayCreate(&made, descriptor, level_count);
	if (r == CUDA_SUCCESS && !arrays_keep(made, true, &plan)) {
		charge_let_go(&plan.charge, cuda.cuMipmappedArrayDestroy(made));
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return HOOK_GIVE(r, mipmap, made);
}

HOOK_BODY(cuArrayDestroy, CUarray, array)
{
	struct array_taken taken;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() != STATE_OPEN)
		return cuda.cuArrayDestroy(array);
	taken = arrays_destroy_begin(array, false);
	r = cuda.cuArrayDestroy(array);
	arrays_destroy_end(&taken, r == CUDA_SUCCESS);
	return r;
}

HOOK_BODY(cuMipmappedArrayDestroy, CUmipmappedArray, mipmap)
{
	struct array_taken taken;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() != STATE_OPEN)
		return cuda.cuMipmappedArrayDestroy(mipmap);
	taken = arrays_destroy_begin(mipmap, true);
	r = cuda.cuMipmappedArrayDestroy(mipmap);
	arrays_destroy_end(&taken, r == CUDA_SUCCESS);
	return r;
}

HOOK_FORMS(cuMemMapArrayAsync, _ptsz, CUarrayMapInfo *, list, unsigned int, count, CUstream, stream)
{
	_cleanup_free_ CUarrayMapInfo *wanted = NULL;
	struct tiles *tiles;
	CUresult r;
	CHARGE_SCOPE();

	if (!list || count == 0 || state_enter() != STATE_OPEN)
		return real(list, count, stream);
	wanted = FAULT_OUT_OF_MEMORY() ? NULL : calloc(count, sizeof(*wanted));
	if (!wanted)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(wanted, list, count * sizeof(*wanted));
	r = tiles_begin(wanted, count, stream, &tiles);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(wanted, count, stream);
	tiles_end(tiles, wanted, r == CUDA_SUCCESS, stream);
	return r;
}

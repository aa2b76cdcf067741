/* SPDX-License-Identifier: Apache-2.0 */
/* The context that is current for the calling thread. */
#include "tenant/driver/current.h"

#include "tenant/driver/attach.h"

__thread unsigned current_stays_calls;
__thread uint64_t current_calls;

CUcontext current_context(void)
{
	CUcontext current = NULL;

	return cuda.cuCtxGetCurrent && cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS ? current
										      : NULL;
}

bool current_enter(CUcontext context)
{
	if (!context || !cuda.cuCtxGetCurrent || !cuda.cuCtxPushCurrent_v2 ||
		!cuda.cuCtxPopCurrent_v2 || current_context() == context)
		return false;
	return cuda.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
}

void current_leave(bool is_entered)
{
	CUcontext popped;

	if (is_entered)
		cuda.cuCtxPopCurrent_v2(&popped);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The door cuGetProcAddress(): ask the driver, swap by address. */
#include "tenant/door/swap.h"
#include "tenant/hooks/hook.h"

HOOK_BODY(
	cuGetProcAddress, const char *, symbol, void **, function, int, version, cuuint64_t, flags)
{
	CUresult r = cuda.cuGetProcAddress(symbol, function, version, flags);

	if (r == CUDA_SUCCESS && function)
		*function = swap_address(*function);
	return r;
}

HOOK_BODY(cuGetProcAddress_v2, const char *, symbol, void **, function, int, version, cuuint64_t,
	flags, CUdriverProcAddressQueryResult *, status)
{
	CUresult r = cuda.cuGetProcAddress_v2(symbol, function, version, flags, status);

	if (r == CUDA_SUCCESS && function)
		*function = swap_address(*function);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The door cuGetProcAddress(): ask the driver, swap by address. */
#include "tenant/door/swap.h"
#include "tenant/hooks/hook.h"

/*
 * Gives the program what the driver answered. The driver writes to a variable of ours: from the program's memory another
 * thread could take the driver's own function before it is exchanged.
 */
static CUresult give(CUresult r, void **function, void *before, void *found)
{
	if (function && (r == CUDA_SUCCESS || found != before))
		*function = swap_address(found);
	return r;
}

HOOK_BODY(
	cuGetProcAddress, const char *, symbol, void **, function, int, version, cuuint64_t, flags)
{
	void *before = function ? *function : NULL, *found = before;
	CUresult r = cuda.cuGetProcAddress(symbol, function ? &found : NULL, version, flags);

	return give(r, function, before, found);
}

HOOK_BODY(cuGetProcAddress_v2, const char *, symbol, void **, function, int, version, cuuint64_t,
	flags, CUdriverProcAddressQueryResult *, status)
{
	void *before = function ? *function : NULL, *found = before;
	CUresult r =
		cuda.cuGetProcAddress_v2(symbol, function ? &found : NULL, version, flags, status);

	return give(r, function, before, found);
}

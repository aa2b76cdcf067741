/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that brings another library (part.c) and the driver, and has functions of its own of the driver's names. */
#include "tests/tenant/ask.h"

#include "gpu/abi/cuda.h"

own_ask_fn own_ask, plugin_ask;
cuMemGetInfo_v2_fn cuMemGetInfo_v2;
int cuckoo(void);

EXPORT int cuckoo(void)
{
	return 4;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	return CUDA_ERROR_UNKNOWN;
}

EXPORT void plugin_ask(void)
{
	ASK_ALL("plugin");
	own_ask();
}

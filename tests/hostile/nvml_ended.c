/* SPDX-License-Identifier: Apache-2.0 */
/* A program ends NVML as often as it can, and then contexts, with which all that no call announces was forgotten. */
#include <dlfcn.h>

#include "gpu/abi/nvml.h"
#include "tests/hostile/hostile.h"

static void end_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlShutdown_fn *end = library ? (nvmlShutdown_fn *)dlsym(library, "nvmlShutdown") : NULL;

	MUST(!end);
	for (int i = 0; i < 64 && end() == NVML_SUCCESS; i++)
		;
}

static void attack(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x30000000];"};
	struct hostile_code small = {.variables = NULL};
	CUcontext other, context = hostile_begin();
	CUmodule module;

	/* The second process of a slice does not begin NVML with its context, but with its first comparison. */
	usleep(1100000);
	for (int i = 0; i < 8; i++) {
		end_nvml();
		MUST(cuModuleLoadData(&module, hostile_fat_binary(&small)));
	}
	for (int i = 0; i < 6; i++) {
		MUST(cuCtxSetCurrent(context));
		end_nvml();
		cuModuleLoadData(&module, hostile_fat_binary(&code));
		if (cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS)
			MUST(cuCtxDestroy_v2(other));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}

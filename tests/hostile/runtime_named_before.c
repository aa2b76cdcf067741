/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each of six contexts loads PTX with kernels of its own that are called "malloc" and "vprintf". The slice is filled but for 2 MiB a context. Then six
 * threads load, at once, PTX that calls malloc() and printf().
 *
 * The kernels' names were taken for the device's own runtime, which then counted as being there: for each load 2 MiB were reserved, and the
 * driver took 202 MiB, which stay when the module is unloaded again. 5,294 MiB were held in a slice of 4 GiB. Now what a text defines itself is
 * its own.
 */
#include "tests/hostile/hostile.h"

#define CONTEXTS 6

static const char names[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry malloc()\n{\n\tret;\n}\n"
			    ".visible .entry vprintf()\n{\n\tret;\n}\n";
static char real[HOSTILE_CODE_BYTES];

static void attack(void)
{
	CUcontext contexts[CONTEXTS];
	CUmodule module;

	hostile_ptx(&(struct hostile_code){.has_heap = true, .has_printf = true}, real);
	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++) {
		MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
		MUST(cuModuleLoadData(&module, names));
	}
	hostile_load_at_once(contexts, CONTEXTS, real);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .is_brief = true,
					  .slow_calls = {"cuModuleLoadData"},
					  .attack = attack});
}

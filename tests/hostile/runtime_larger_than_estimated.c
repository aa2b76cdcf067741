/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A card whose runtime for device code that allocates takes 700 MiB of a context, and not 138 as on an H200. Two
 * processes load such code one after the other.
 *
 * The estimate was reserved each time, in each process, as long as the slice lived, and what came stays until the context
 * ends: 2.4 GiB were held in a slice of 2 GiB. Now the slice remembers what the first one was measured to take.
 */
#include "tests/hostile/hostile.h"

static void load(int index)
{
	struct hostile_code code = {.has_heap = true};
	char text[HOSTILE_CODE_BYTES];
	CUmodule module;

	if (index > 0)
		hostile_meet(2);
	hostile_begin();
	cuModuleLoadData(&module, hostile_ptx(&code, text));
	if (index == 0)
		hostile_meet(2);
	/* Until the other one has done the same. */
	usleep(1000000);
}

static void attack(void)
{
	hostile_processes(2, load);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .board = "malloc_bytes = 700MiB",
					  .attack = attack});
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice is filled but for 2 MiB for each of six contexts. Then six threads load at once, each in a context of its own, a fat binary that uses
 * the device's own runtime: for each 2 MiB are reserved, and the driver takes 202 MiB, which stay when it has been unloaded again.
 *
 * SECURITY.md says that the slice may be above its quota by the rest of one: 5,294 MiB were held in a slice of 4 GiB. Now such loads go one after
 * the other.
 */
#include "tests/hostile/hostile.h"

#define CONTEXTS 6

static void attack(void)
{
	const void *real =
		hostile_fat_binary(&(struct hostile_code){.has_heap = true, .has_printf = true});
	CUcontext contexts[CONTEXTS];

	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++)
		MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
	hostile_load_at_once(contexts, CONTEXTS, real);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .allowance_bytes = 202 * MIB,
					  .is_brief = true,
					  .slow_calls = {"cuModuleLoadData"},
					  .attack = attack});
}

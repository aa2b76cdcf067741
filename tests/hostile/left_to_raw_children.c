/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of a raw clone() use their parent's driver, which does not notice that it is in another process. What they take is
 * the parent's on the device, and was given back in the books with each child's end: 60 of them held 60 GiB for a slice of 2 GiB.
 */
#include <sys/wait.h>

#include "tests/hostile/hostile.h"
#include "tests/unit/raw_child.h"

#define CHILDREN 60

static void take_and_leave(void)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	cuMemCreate(&handle, 1 * GIB, &properties, 0);
	_exit(0);
}

static void attack(void)
{
	hostile_begin();
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = raw_child();

		MUST(pid < 0);
		if (pid == 0)
			take_and_leave();
		MUST(waitpid(pid, NULL, 0) != pid);
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}

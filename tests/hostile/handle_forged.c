/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who opens memory by another process's handle writes a small size into it, which the driver believes.
 *
 * No process of the slice gave out such a handle, so it was taken for another slice's, and charged in the size that the driver told:
 * 6,152 MiB were held in a slice of 3,072 on an H200. Now it is not opened.
 */
#include "tests/hostile/forged.h"
#include "tests/hostile/hostile.h"

static void attack(void)
{
	forged_attack(NULL);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB, .attack = attack});
}

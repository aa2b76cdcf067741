/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exported descriptors get the mark of other memory of just their size, which is charged already, as a descriptor keeps it.
 * A process that has no handle of that memory imports them all. Nothing tells the first from it, so it has one more than it
 * is charged for, and is given that one again for the rest.
 */
#include "tests/hostile/descriptors.h"

#include <stdatomic.h>
#include <sys/mman.h>

static _Atomic uint64_t *other;

static void prepare(void)
{
	int fd;

	MUST(!descriptors_create_kept(GIB, &fd));
	*other = descriptors_mark_of(fd);
}

static void forge(int fd, int round)
{
	/* Without the library there are no marks, and none is needed. */
	if (*other)
		descriptors_set_mark(fd, *other, 512);
}

static void attack(void)
{
	other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(other == MAP_FAILED);
	descriptors_attack(&(struct descriptors){
		.prepare = prepare, .forge = forge, .finish = descriptors_take_the_rest});
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB + 512 * MIB,
					  .allowance_bytes = GIB,
					  .is_brief = true,
					  .attack = attack});
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exported descriptor gets the mark of other memory, which is a little larger and charged already. Another process
 * imports it, and the one that made it ends. A mark is believed of memory of just its size alone.
 */
#include "tests/hostile/descriptors.h"

#include <stdatomic.h>
#include <sys/mman.h>

static _Atomic uint64_t *other;

static void prepare(void)
{
	int fd;

	MUST(!descriptors_create(GIB + 2 * MIB, &fd));
	*other = descriptors_mark_of(fd);
}

static void forge(int fd, int round)
{
	/* Without the library there are no marks, and none is needed. */
	if (*other)
		descriptors_set_mark(fd, *other, 513);
}

static void attack(void)
{
	other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(other == MAP_FAILED);
	descriptors_attack(&(struct descriptors){.prepare = prepare, .forge = forge});
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 3 * GIB + 512 * MIB, .is_brief = true, .attack = attack});
}

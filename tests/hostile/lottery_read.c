/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long kernels, known as short, each given last before a pause. The program reads in the region, which it can map, what the library goes by when it
 * doubts pauses: it hides nothing while work is measured, and makes a short and harmless pause where one is about to be doubted.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "region/layout.h"
#include "tests/hostile/served.h"

#define KNOWN	  20
#define SHORT_NS  20000
#define KERNEL_NS (50 * MS)
#define PAUSE_NS  170000
#define HARMLESS  40   /* in a row, at most */
#define SETTLE_MS 4000 /* until it is found out: one piece of eight is, by chance */

/* The word: until when, the lot of the next eight pauses, and how many of these were. */
#define UNTIL_NS(word) ((word) & ~UINT64_C(0xff))
#define LOT(word)      ((word) >> 3 & 7)
#define DRAWN(word)    ((word)&7)

static const _Atomic uint64_t *map_word(void)
{
	const char *share = getenv("VGPU_SHARE");
	const struct region_file *region;
	char line[256], path[240];
	FILE *file = share ? fopen(share, "r") : NULL;
	int fd = -1;

	/* Without the library there is none. */
	if (!file)
		return NULL;
	while (fd < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "region %239s", path) == 1)
			fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fclose(file));
	MUST(fd < 0);
	region = mmap(NULL, sizeof(*region), PROT_READ, MAP_SHARED, fd, 0);
	MUST(region == MAP_FAILED);
	return &region->own.compute[0].doubted;
}

static void attack(void)
{
	const _Atomic uint64_t *doubted;
	CUfunction kernel;
	unsigned harmless = 0;
	uint64_t word;

	served_begin();
	doubted = map_word();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		served_launch(kernel, NULL, SHORT_NS);
		word = doubted ? atomic_load(doubted) : 1;
		if ((UNTIL_NS(word) > clock_now_ns() || !DRAWN(word) || DRAWN(word) == LOT(word)) &&
			harmless++ < HARMLESS) {
			/* The first piece after a pause is measured by itself. */
			served_launch(kernel, NULL, SHORT_NS);
			served_sleep(PAUSE_NS);
			continue;
		}
		harmless = 0;
		served_launch(kernel, NULL, KERNEL_NS);
		served_sleep(KERNEL_NS + MS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv,
		&(struct served){.cap_percent = 30, .settle_ms = SETTLE_MS, .attack = attack});
}

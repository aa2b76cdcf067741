/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_slices: slices that live, until standard input ends.
 *
 * Each line of it is "PATH UUID used quota cores cap busy cap-wait turn-wait borrowed refusals state": MiB, permille, and
 * enum region_compute_state. "go" answers "ready", and from then on counters run; "refuse N" refuses the N-th slice something.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"

#define MIB	   (UINT64_C(1) << 20)
#define SLICES	   128
#define TICK_MS	   50
#define PATH_BYTES 1024

struct slice {
	struct region region;
	unsigned device;
	unsigned busy, cap_wait, turn_wait, borrowed; /* permille */
};

static struct slice slices[SLICES];
static unsigned count;

static int add(const char *line)
{
	unsigned used, quota, cores, cap, refusals, state, slot;
	char path[PATH_BYTES], uuid[128];
	struct slice *s = &slices[count];
	struct region_own *own;

	if (count == SLICES || sscanf(line, "%1023s %127s %u %u %u %u %u %u %u %u %u %u", path,
				       uuid, &used, &quota, &cores, &cap, &s->busy, &s->cap_wait,
				       &s->turn_wait, &s->borrowed, &refusals, &state) != 12)
		return -1;
	if (region_open(path, &s->region) || slot_claim(&s->region, &slot) ||
		region_device(&s->region, uuid, &s->device) ||
		ledger_charge(
			s->region.file, slot, s->device, ledger_units(used * MIB), LEDGER_NO_LIMIT))
		return -1;
	own = &s->region.file->own;
	s->region.file->hami.limit_bytes[s->device] = quota * MIB;
	ledger_note(s->region.file, slot, s->device, CHARGE_PLAIN, (int64_t)(used * MIB));
	own->devices[s->device].refusal_count = refusals;
	own->compute[s->device].limits =
		(uint64_t)cores << 48 | (uint64_t)cap << 32 | 100u << 16 | state;
	own->compute[s->device].busy_ns = s->busy ? 1000 : 0;
	count++;
	return 0;
}

static void run_on(uint64_t took_ns)
{
	for (unsigned i = 0; i < count; i++) {
		struct region_compute *c = &slices[i].region.file->own.compute[slices[i].device];

		c->busy_ns += took_ns * slices[i].busy / 1000;
		c->budget_wait_ns += took_ns * slices[i].cap_wait / 1000;
		c->turn_wait_ns += took_ns * slices[i].turn_wait / 1000;
		c->lent_ns += took_ns * slices[i].borrowed / 1000;
	}
}

static void run_until_word(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t before_ns = clock_now_ns(), now_ns;

	while (poll(&input, 1, TICK_MS) == 0) {
		now_ns = clock_now_ns();
		run_on(now_ns - before_ns);
		before_ns = now_ns;
	}
}

int main(void)
{
	char line[PATH_BYTES + 256];
	unsigned which;

	setvbuf(stdin, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "refuse %u", &which) == 1 && which < count)
			slices[which]
				.region.file->own.devices[slices[which].device]
				.refusal_count++;
		else if (strcmp(line, "go\n") != 0 && add(line))
			return 1;
		else if (strcmp(line, "go\n") != 0)
			continue;
		puts("ready");
		fflush(stdout);
		run_until_word();
	}
	return 0;
}

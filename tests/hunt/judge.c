/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge. It asks the machine and looks into the region, and has nothing of the library's. With HUNT_TRACE=FILE
 * it says there what it sees at each yield point.
 */
#include "tests/hunt/judge.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region/ledger.h"
#include "sim/machine/machine.h"

#define KIB	    1024u
#define CHUNK_BYTES UINT64_C(0x200000)

static struct {
	struct machine *machine;
	const struct region_file *region;
	uint64_t quota_bytes, chunk_bytes, hidden_bytes, heap_bytes, most_found_later;
	const char *tag, *what;
	int trace_fd; /* -1: none */
	unsigned number;
} judge;

void judge_fail(const char *kind, const char *format, ...)
{
	char why[400];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	dprintf(1, "%s: %s; step %u (%s)\n", kind, why, judge.number, judge.what);
	_exit(1);
}

void judge_open(const char *region, uint64_t quota_bytes)
{
	int fd = open(region, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, sizeof(struct region_file), PROT_READ, MAP_SHARED, fd, 0);
	const char *trace = getenv("HUNT_TRACE");
	char why[256];

	judge.trace_fd = trace ? open(trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	judge.tag = getenv("VGPU_SIM_TAG");
	judge.quota_bytes = quota_bytes;
	judge.what = "begin";
	if (fd < 0 || at == MAP_FAILED || !judge.tag ||
		machine_open(NULL, NULL, &judge.machine, why, sizeof(why)) != 0)
		judge_fail("broken", "no machine, or no region %s", region);
	close(fd);
	judge.region = at;
}

void judge_allow_chunks(unsigned count)
{
	judge.chunk_bytes = count * CHUNK_BYTES;
}

void judge_allow_hidden(int64_t bytes)
{
	judge.hidden_bytes += (uint64_t)bytes;
}

void judge_allow_heap(uint64_t bytes)
{
	judge.heap_bytes = bytes;
}

void judge_note(unsigned number, const char *what)
{
	judge.number = number;
	judge.what = what;
}

/* What streams took, and chunks that hold what nobody names, are charged when the books are compared with NVML's
 * figure (SECURITY.md). */
static uint64_t found_later(void)
{
	static struct machine_snapshot snapshot;
	uint64_t bytes = judge.chunk_bytes + judge.hidden_bytes;

	if (machine_read_snapshot(judge.machine, 1000000000, &snapshot) != 0)
		judge_fail("broken", "the machine does not answer");
	for (int i = 0; i < snapshot.process_count; i++)
		bytes += snapshot.process[i].device[0].bytes[MACHINE_STREAM];
	if (bytes > judge.most_found_later)
		judge.most_found_later = bytes;
	return bytes;
}

static struct machine_truth truth_now(void)
{
	struct machine_truth truth;

	if (machine_read_truth(judge.machine, judge.tag, 0, &truth) != 0)
		judge_fail("broken", "the machine does not answer");
	return truth;
}

static void expect_charged(const struct machine_truth *truth, uint64_t books, const char *place)
{
	if (truth->peak_held_bytes > judge.quota_bytes + judge.most_found_later &&
		truth->peak_held_bytes > judge.quota_bytes + found_later())
		judge_fail("above-quota", "held %llu KiB of %llu KiB at '%s'",
			(unsigned long long)(truth->peak_held_bytes / KIB),
			(unsigned long long)(judge.quota_bytes / KIB), place);
	if (truth->held_bytes > books && truth->held_bytes > books + found_later())
		judge_fail("uncharged", "held %llu KiB, the books say %llu KiB at '%s'",
			(unsigned long long)(truth->held_bytes / KIB),
			(unsigned long long)(books / KIB), place);
}

void judge_now(const char *place)
{
	struct machine_truth truth = truth_now();
	uint64_t books = ledger_used_bytes(judge.region, 0);

	if (judge.trace_fd >= 0)
		dprintf(judge.trace_fd, "%2u %9llu held %9llu books  %s\n", judge.number,
			(unsigned long long)(truth.held_bytes / KIB),
			(unsigned long long)(books / KIB), place);
	expect_charged(&truth, books, place);
}

bool judge_is_exact(bool may_differ_by_chunks)
{
	return ledger_used_bytes(judge.region, 0) <
	       truth_now().held_bytes + judge.heap_bytes +
		       (may_differ_by_chunks ? judge.chunk_bytes : 0) + REGION_UNIT_BYTES;
}

void judge_rest(bool is_all_given_back)
{
	struct machine_truth truth = truth_now();
	uint64_t books = ledger_used_bytes(judge.region, 0);

	expect_charged(&truth, books, "rest");
	if (books >= truth.held_bytes + judge.heap_bytes + judge.chunk_bytes + REGION_UNIT_BYTES)
		judge_fail("left-over", "held %llu KiB, the books say %llu KiB at rest",
			(unsigned long long)(truth.held_bytes / KIB),
			(unsigned long long)(books / KIB));
	if (is_all_given_back && (books || truth.held_bytes))
		judge_fail("never-given", "held %llu KiB, the books say %llu KiB in the end",
			(unsigned long long)(truth.held_bytes / KIB),
			(unsigned long long)(books / KIB));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hunts for programs that get more or less compute time than their slice's limit, or are charged wrongly.
 *
 * HUNT_SEED says which programs are tried (in `make test` a new one each day), HUNT_SECONDS how long. A program that
 * fails is made short and printed; "HUNT_PROGRAM=..." tries it again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/hunt/compute.h"
#include "tests/hunt/seed.h"
#include "tests/hunt/shrink.h"

#define SECONDS	       25
#define SHRINK_SECONDS 120
#define SKIPPED	       77 /* what meson takes for a skipped test */

/* The machine's clock: the other one stands while anything works. */
static uint64_t real_s(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

struct failing {
	const struct compute_program *program;
	const char *fault;
	uint64_t until_s;
};

static struct compute_program part_of(
	const struct compute_program *p, const unsigned *steps, unsigned count)
{
	struct compute_program part = *p;

	part.count = count;
	for (unsigned i = 0; i < count; i++)
		part.steps[i] = p->steps[steps[i]];
	return part;
}

static bool fails(const unsigned *steps, unsigned count, void *argument)
{
	const struct failing *f = argument;
	struct compute_program part = part_of(f->program, steps, count);

	return real_s() < f->until_s && compute_judge(&part, false) == f->fault;
}

static bool fails_still(const struct failing *f, const struct compute_program *p)
{
	return real_s() < f->until_s && compute_judge(p, false) == f->fault;
}

/* Fewer steps, then no peer, then each step once. */
static struct compute_program shorten(const struct failing *f)
{
	unsigned steps[COMPUTE_STEPS], count;
	struct compute_program shorter, other;

	count = shrink(f->program->count, fails, (void *)f, UINT64_MAX, steps);
	shorter = part_of(f->program, steps, count);
	other = shorter;
	other.peer_percent = 0;
	if (shorter.peer_percent && fails_still(f, &other))
		shorter = other;
	for (unsigned i = 0; i < shorter.count; i++) {
		other = shorter;
		other.steps[i].times = 1;
		if (shorter.steps[i].times > 1 && fails_still(f, &other))
			shorter = other;
	}
	return shorter;
}

static void report(const struct compute_program *p, const char *fault, uint64_t seed)
{
	struct failing f = {.program = p, .fault = fault, .until_s = real_s() + SHRINK_SECONDS};
	struct compute_program shorter;
	char text[COMPUTE_TEXT];

	compute_print(p, text);
	printf("%s, seed %llu:\n\t%s\n", fault, (unsigned long long)seed, text);
	fflush(stdout);
	shorter = shorten(&f);
	compute_judge(&shorter, true);
	compute_print(&shorter, text);
	printf("in short, HUNT_PROGRAM=\"%s\"\n", text);
	fflush(stdout);
}

static int hunt(void)
{
	uint64_t seed = seed_of_today();
	uint64_t until_s = real_s() + seed_number("HUNT_SECONDS", SECONDS);
	bool is_loud = getenv("HUNT_LOUD"), goes_on = getenv("HUNT_KEEP");
	unsigned tried = 0, faults = 0;
	char text[COMPUTE_TEXT];

	for (; real_s() < until_s && (!faults || goes_on); tried++) {
		struct compute_program program;
		const char *fault;

		compute_make(hash_u64(seed) + tried, &program);
		if (is_loud) {
			compute_print(&program, text);
			printf("%s\n", text);
			fflush(stdout);
		}
		fault = compute_judge(&program, is_loud);
		if (!fault)
			continue;
		faults++;
		report(&program, fault, seed);
	}
	printf("%u programs, %u faults\n", tried, faults);
	return faults != 0;
}

static int try_again(const char *text)
{
	struct compute_program program;

	if (!compute_parse(text, &program)) {
		printf("no program: %s\n", text);
		return 2;
	}
	return compute_judge(&program, true) != NULL;
}

/* A program a line. */
static int try_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[COMPUTE_TEXT];
	int status = 0;

	if (!file)
		return 2;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		printf("%s\n", line);
		if (line[0] != '#')
			status |= try_again(line);
	}
	fclose(file);
	return status;
}

static int play(const char *part)
{
	const char *times = getenv(COMPUTE_TIMES);
	struct compute_program program;

	if (strcmp(part, "peer") == 0)
		compute_play_peer();
	if (!compute_parse(getenv(COMPUTE_PROGRAM), &program))
		return 2;
	compute_play(&program, (uint32_t)strtoul(part, NULL, 10),
		times ? (uint32_t)strtoul(times, NULL, 10) : 0);
	return 1;
}

int main(int argc, char **argv)
{
	const char *text = getenv("HUNT_PROGRAM"), *part = getenv(COMPUTE_PART);

	if (part)
		return play(part);
	if (!getenv("TEST_CLOCK_LIBRARY") || !getenv("TENANT_DRIVER")) {
		printf("skipped, it needs the simulated node on a virtual clock\n");
		return SKIPPED;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (argc > 1)
		return try_file(argv[1]);
	return text ? try_again(text) : hunt();
}

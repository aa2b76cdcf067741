/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hunt: random programs of one kind (program.h) until the time is over, each in a process and a region of its
 * own. One that fails is made short and printed, and is kept in a file that HUNT_REPLAY runs again.
 *
 *	test_hunt MODE		for HUNT_SECONDS, from HUNT_SEED on; with HUNT_KEEP it goes on after a failure
 *	test_hunt FILE...	programs that are kept, each HUNT_RUNS times; with HUNT_SHRINK it makes them short
 *	test_hunt rounds	ROUNDS times each family takes and gives back, or the one in FAMILY
 */
#include "tests/tenant/tenant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/hunt/program.h"
#include "tests/hunt/seed.h"
#include "tests/hunt/shrink.h"

#define SECONDS	       7 /* in `make test` */
#define ROUNDS	       "1000"
#define SHRINK_SECONDS 60
#define TRIES	       4 /* what depends on luck is tried so often */
#define KEPT_RUNS      3

struct hunt {
	struct node *node;
	struct slice *slice;
	enum program_mode mode;
	struct program program;	     /* that fails, whole */
	char verdict[200], kind[32]; /* of the last that failed */
	unsigned long programs, steps, yields;
};

/* The kind of a verdict is its first word. */
static void note_verdict(struct hunt *h, int status, const char *output)
{
	const char *end = strchr(output, '\n');
	int length = end ? (int)(end - output) : (int)strlen(output);

	if (WIFSIGNALED(status))
		snprintf(h->verdict, sizeof(h->verdict), "%s: signal %d %.*s",
			WTERMSIG(status) == SIGALRM ? "hangs" : "crashes", WTERMSIG(status), length,
			output);
	else
		snprintf(h->verdict, sizeof(h->verdict), "%.*s", length, output);
	snprintf(h->kind, sizeof(h->kind), "%.*s", (int)strcspn(h->verdict, ":"), h->verdict);
}

/* Runs the player in a new region with that quota; what it printed is in output. */
static int play(struct hunt *h, uint64_t quota_mib, const char *const words[], char output[512])
{
	char *argv[8] = {strdup(node_program("hunt-play"))};
	char quota[32];
	unsigned count = 1;
	int status;

	while (words[count - 1]) {
		argv[count] = strdup(words[count - 1]);
		count++;
	}
	argv[count++] = h->slice->region;
	argv[count] = NULL;
	unlink(h->slice->region);
	snprintf(quota, sizeof(quota), "%llum", (unsigned long long)quota_mib);
	slice_change(h->slice, quota, NULL);
	machine_reset_peaks(h->node->machine);
	status = node_run(h->node, h->slice, argv, output, 512);
	for (unsigned i = 0; argv[i] != h->slice->region; i++)
		free(argv[i]);
	return status;
}

/* Whether it fails. */
static bool run(struct hunt *h, const struct program *program)
{
	char text[PROGRAM_TEXT], output[512], file[512];
	const char *const words[] = {file, NULL};
	int status;

	program_print(program, text);
	snprintf(file, sizeof(file), "%s", node_file(h->node, "program", text, strlen(text)));
	status = play(h, program->quota_mib, words, output);
	h->programs++;
	h->steps += program->count;
	if (status == 0) {
		h->yields += strtoul(output, NULL, 10);
		return false;
	}
	note_verdict(h, status, output);
	return true;
}

static void take_part(const struct program *whole, const unsigned *steps, unsigned count,
	struct program *ret_part)
{
	*ret_part = *whole;
	ret_part->count = count;
	for (unsigned i = 0; i < count; i++)
		ret_part->step[i] = whole->step[steps[i]];
}

/* In the same way as the whole program. */
static bool fails_alike(const unsigned *steps, unsigned count, void *argument)
{
	struct hunt *h = argument;
	struct program part;
	char kind[sizeof(h->kind)], verdict[sizeof(h->verdict)];
	bool is_alike = false;

	memcpy(kind, h->kind, sizeof(kind));
	memcpy(verdict, h->verdict, sizeof(verdict));
	take_part(&h->program, steps, count, &part);
	for (unsigned i = 0; i < TRIES && !is_alike; i++)
		is_alike = run(h, &part) && strcmp(h->kind, kind) == 0;
	if (!is_alike) {
		memcpy(h->kind, kind, sizeof(kind));
		memcpy(h->verdict, verdict, sizeof(verdict));
	}
	return is_alike;
}

/* What a step need not have goes, too: pauses and accidents. */
static void drop_accidents(struct hunt *h)
{
	unsigned all[PROGRAM_STEPS];

	for (unsigned i = 0; i < h->program.count; i++)
		all[i] = i;
	for (unsigned i = 0; i < h->program.count; i++) {
		struct program_step *s = &h->program.step[i];
		unsigned *const accidents[] = {&s->pause, &s->refuse, &s->memory};

		for (unsigned k = 0; k < 3; k++) {
			unsigned before = *accidents[k];

			*accidents[k] = 0;
			if (before && !fails_alike(all, h->program.count, h))
				*accidents[k] = before;
		}
	}
}

static void make_short(struct hunt *h)
{
	uint64_t deadline_ns =
		clock_now_ns() + seed_number("SHRINK_SECONDS", SHRINK_SECONDS) * 1000000000;
	unsigned steps[PROGRAM_STEPS], count;
	struct program part;

	count = shrink(h->program.count, fails_alike, h, deadline_ns, steps);
	take_part(&h->program, steps, count, &part);
	h->program = part;
	drop_accidents(h);
	count = shrink(h->program.count, fails_alike, h, deadline_ns, steps);
	take_part(&h->program, steps, count, &part);
	h->program = part;
}

static void report(struct hunt *h, const char *what)
{
	char text[PROGRAM_TEXT];

	program_print(&h->program, text);
	/* print_message() cuts what is longer than a few lines */
	printf("%s\n# %s\n%s", what, h->verdict, text);
	fflush(stdout);
}

static void no_program_breaks_the_books(struct hunt *h, uint64_t seed)
{
	uint64_t begun_ns = clock_now_ns(), seconds = seed_seconds(SECONDS);
	const char *keep = getenv("HUNT_KEEP");

	for (uint64_t i = 0; clock_now_ns() - begun_ns < seconds * 1000000000; i++) {
		program_make(&h->program, h->mode, seed * 1000000 + i);
		if (!run(h, &h->program))
			continue;
		print_message("program %llu, after %lu programs of %lu steps and %.1f s: %s\n",
			(unsigned long long)i, h->programs, h->steps,
			(double)(clock_now_ns() - begun_ns) / 1e9, h->verdict);
		make_short(h);
		report(h, "fails; run it again with HUNT_REPLAY=FILE:");
		if (!keep)
			fail();
	}
	print_message("%s: %lu programs, %lu steps, %lu yields\n", program_mode_text(h->mode),
		h->programs, h->steps, h->yields);
}

static void replay(struct hunt *h, const char *path)
{
	uint64_t runs = seed_number("HUNT_RUNS", KEPT_RUNS);
	char text[PROGRAM_TEXT] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_true(program_parse(text, &h->program));
	for (uint64_t i = 0; i < runs; i++)
		if (run(h, &h->program)) {
			report(h, path);
			if (seed_number("HUNT_SHRINK", 0)) {
				make_short(h);
				report(h, "in short:");
			}
			fail();
		}
}

static const char *const families[] = {
#define FAMILY(name) #name,
#include "tests/tenant/load/family.def"
};

static void every_family_ends_with_nothing(struct hunt *h)
{
	const char *only = getenv("FAMILY"), *rounds = getenv("ROUNDS");
	char output[512];

	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const char *const words[] = {
			"rounds", families[i], rounds && *rounds ? rounds : ROUNDS, NULL};
		uint64_t begun_ns = clock_now_ns();
		int status;

		if (only && *only && strcmp(only, families[i]) != 0)
			continue;
		status = play(h, ROUNDS_QUOTA_MIB, words, output);
		output[strcspn(output, "\n")] = '\0';
		print_message("%s: %s, %.1f s\n", families[i], output,
			(double)(clock_now_ns() - begun_ns) / 1e9);
		assert_int_equal(status, 0);
	}
}

static char *const *arguments;

static void hunt(void **state)
{
	struct hunt h = {.node = *state, .slice = slice_new(*state, "hunted", "1g", NULL)};
	const char *file = getenv("HUNT_REPLAY");

	h.slice->quota[0] = UINT64_MAX; /* the programs' judge looks at it */
	h.node->is_loud = true;
	if (file) {
		replay(&h, file);
		return;
	}
	while (h.mode < PROGRAM_MODES && strcmp(program_mode_text(h.mode), arguments[1]) != 0)
		h.mode++;
	if (strcmp(arguments[1], "rounds") == 0)
		every_family_ends_with_nothing(&h);
	else if (h.mode < PROGRAM_MODES)
		no_program_breaks_the_books(&h, seed_of_today());
	else
		for (unsigned i = 1; arguments[i]; i++)
			replay(&h, arguments[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {test_with_node(hunt)};

	if (argc < 2)
		return 64;
	arguments = argv;
	return cmocka_run_group_tests_name("hunt", tests, NULL, NULL);
}

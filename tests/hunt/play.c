/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one program (program.h) in this process, under the tenant library with the places of base/fault.h in it, and
 * judges each moment of it.
 *
 *	play PROGRAM REGION		prints a verdict and ends with 1 where there is one
 *	play rounds FAMILY COUNT REGION	takes and gives back so many times, in one thread, as fast as it can
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/hunt/baton.h"
#include "tests/hunt/judge.h"
#include "tests/hunt/program.h"
#include "tests/tenant/load/load.h"

#define EXPORT	       __attribute__((visibility("default")))
#define SECONDS_MOST   60 /* of a program */
#define ROUNDS_HELD    4  /* at once */
#define JUDGED_EVERY   64 /* rounds */
#define MEASURES       64
#define MEASURES_LEAST 8
#define MEASURE_US     25000
#define MIB	       (UINT64_C(1) << 20)
#define CHUNK_BYTES    (2 * MIB)
#define HEAP_BYTES     (10 * MIB) /* of device code, with what it takes itself */

static struct client client;
static struct program program;

/* What a thread of the program has, under the baton. */
static struct worker {
	struct load load;
	pthread_t thread;
	unsigned number, refuse, memory;
	uint64_t hidden_bytes;		 /* that the step under way may take unknown */
	const struct program_step *step; /* the one that it is in, or the last */
} workers[PROGRAM_THREADS];

static __thread struct worker *self;
static bool may_stay; /* something may stay charged for good */

/* Called by the library and by the simulated driver, where this program exports them. */
EXPORT void hunt_at_place(const char *place);
EXPORT bool hunt_is_out_of_memory(void);
EXPORT int hunt_at_call(const char *symbol, bool is_end);

void hunt_at_place(const char *place)
{
	baton_yield(place);
}

bool hunt_is_out_of_memory(void)
{
	bool is_out = self && self->memory > 0 && --self->memory == 0;

	/* The library says so. */
	may_stay |= is_out;
	return is_out;
}

/* A question about what is there, or what is current, does not fail. */
static bool may_fail(const char *symbol)
{
	static const char *const never[] = {
		"Get", "Query", "Exchange", "Current", "Synchronize", "DestroyExternalMemory"};

	for (unsigned i = 0; i < ARRAY_SIZE(never); i++)
		if (strstr(symbol, never[i]))
			return false;
	return true;
}

int hunt_at_call(const char *symbol, bool is_end)
{
	bool is_refused =
		self && !is_end && self->refuse > 0 && may_fail(symbol) && --self->refuse == 0;

	/* Managed memory that is not freed is on no device, and in the books; a free without an event stays there. */
	may_stay |= is_refused && (strstr(symbol, "Free") || strstr(symbol, "Event"));
	baton_yield(symbol);
	return is_refused ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static void hide(uint64_t bytes)
{
	/* Each variable takes whole chunks. */
	bytes += 2 * CHUNK_BYTES;
	if (!self)
		return;
	self->hidden_bytes += bytes;
	judge_allow_hidden((int64_t)bytes);
}

static void watch(const char *place)
{
	if (self && self->step)
		judge_note(self->step->number, place);
	judge_now(place);
}

/* What a step took, in whichever thread's table: its place there, or -1. */
static int find_object(unsigned number, struct load **ret_load)
{
	for (unsigned i = 0; i < program.threads; i++)
		for (unsigned k = 0; k < workers[i].load.held_count; k++)
			if (workers[i].load.held[k].number == number) {
				*ret_load = &workers[i].load;
				return (int)k;
			}
	return -1;
}

/* Whether the program takes by that family. */
static bool is_taken(enum load_family_name name)
{
	for (unsigned i = 0; i < program.count; i++)
		if (program.step[i].verb == PROGRAM_TAKE && program.step[i].family == name)
			return true;
	return false;
}

static CUresult take(struct load *l, const struct program_step *step)
{
	enum load_family_name name = (enum load_family_name)step->family;

	if (l->weight[name] == 0 || l->held_count == LOAD_HELD_MOST)
		return CUDA_SUCCESS;
	/* What a descriptor may keep goes out of the books only where nobody is in the way of looking. */
	may_stay |= name == LOAD_shared_pool || name == LOAD_ranged;
	return load_take(l, name, step->number);
}

/* What is given back once has left the table before, so that no other thread uses it meanwhile. */
static CUresult act_on(struct load *l, const struct program_step *step)
{
	struct load *owner = NULL;
	int at = find_object(step->object, &owner);
	struct load_held held;
	bool is_misused;
	CUresult r;

	if (at < 0)
		return CUDA_SUCCESS;
	held = owner->held[at];
	if (step->verb == PROGRAM_USE && !held.family->use)
		return CUDA_SUCCESS;
	is_misused = program.mode == PROGRAM_HOSTILE && step->verb != PROGRAM_GIVE &&
		     held.family->bears_misuse;
	if (!is_misused)
		owner->held[at] = owner->held[--owner->held_count];
	r = step->verb == PROGRAM_USE ? held.family->use(l, &held) : held.family->give(l, &held);
	if (step->verb == PROGRAM_USE && !is_misused)
		owner->held[owner->held_count++] = held;
	return r;
}

static void do_step(struct worker *w, const struct program_step *step)
{
	CUresult r;

	w->step = step;
	w->load.state = hash_u64(step->seed) | 1;
	w->refuse = step->refuse;
	w->memory = step->memory;
	baton_pause_at(step->pause);
	baton_yield("step");
	r = step->verb == PROGRAM_TAKE ? take(&w->load, step) : act_on(&w->load, step);
	baton_pause_at(0);
	judge_allow_hidden(-(int64_t)w->hidden_bytes);
	w->hidden_bytes = 0;
	w->refuse = w->memory = 0;
	judge_note(step->number, "its end");
	if (program.mode == PROGRAM_HONEST && r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY)
		judge_fail("error", "the driver's answer is %d", (int)r);
}

static void *work(void *argument)
{
	struct worker *w = argument;

	self = w;
	baton_join(w->number);
	client.cu.cuCtxSetCurrent(w->load.context);
	for (unsigned i = 0; i < program.count; i++)
		if (program.step[i].thread == w->number)
			do_step(w, &program.step[i]);
	baton_leave();
	self = NULL;
	return NULL;
}

static void must(const char *what, CUresult r)
{
	if (r != CUDA_SUCCESS && program.mode == PROGRAM_HONEST)
		judge_fail("error", "%s: the driver's answer is %d", what, (int)r);
}

static void begin(const char *region, uint64_t quota_bytes)
{
	const char *missing;
	CUcontext context;

	if (door_open(DOOR_LINKED, &client.cu, &missing) != 0 ||
		client.cu.cuInit(0) != CUDA_SUCCESS ||
		client.cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
		client.cu.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
		printf("broken: no driver\n");
		exit(1);
	}
	judge_open(region, quota_bytes);
	for (unsigned i = 0; i < program.threads; i++) {
		workers[i].number = i;
		workers[i].load = (struct load){.client = &client,
			.hide = hide,
			.is_alone = program.threads == 1,
			.ends_primary = true,
			.ends_process = true,
			.is_hostile = program.mode == PROGRAM_HOSTILE,
			.state = i + 1,
			.context = context};
		must("begin", load_begin(&workers[i].load));
	}
}

/* What is freed by two threads at once may stay charged, too. */
static bool may_be_exact(void)
{
	return program.mode != PROGRAM_HOSTILE && !may_stay;
}

/*
 * What was charged with care, as other threads were in the way of measuring it, is measured again when the program
 * asks for what is free, now and then.
 */
static void let_measure(void)
{
	size_t free_bytes, total_bytes;

	for (unsigned i = 0; i < MEASURES && may_be_exact() && !judge_is_exact(i >= MEASURES_LEAST);
		i++) {
		client.cu.cuMemGetInfo_v2(&free_bytes, &total_bytes);
		usleep(MEASURE_US);
	}
}

static void judge_end(bool is_all_given_back)
{
	if (may_be_exact())
		judge_rest(is_all_given_back);
	else
		judge_now("rest");
}

static void end(void)
{
	judge_note(0, "end");
	for (unsigned i = 0; i < program.threads; i++) {
		CUresult r = load_end(&workers[i].load);

		/* Where calls may fail, what follows is tried all the same. */
		while (r != CUDA_SUCCESS && workers[i].load.held_count > 0)
			r = load_end(&workers[i].load);
		must("end", r);
		judge_now("end");
	}
	must("synchronize", client.cu.cuCtxSynchronize());
	let_measure();
	judge_end(false);
	must("release", client.cu.cuDevicePrimaryCtxRelease_v2(0));
	judge_end(program.mode == PROGRAM_HONEST);
}

static void read_program(const char *path)
{
	char text[PROGRAM_TEXT] = "";
	FILE *file = fopen(path, "r");

	if (!file || fread(text, 1, sizeof(text) - 1, file) == 0 ||
		!program_parse(text, &program)) {
		printf("broken: %s is no program\n", path);
		exit(1);
	}
	fclose(file);
}

/* As many as the program takes things that may lie in shared chunks, where it has code, or arrays of several threads. */
static unsigned shared_chunks(void)
{
	static const enum load_family_name code[] = {LOAD_module, LOAD_library, LOAD_library_graph,
		LOAD_graph_change, LOAD_hidden_module, LOAD_hidden_library, LOAD_frames,
		LOAD_device_heap, LOAD_deferred, LOAD_stream, LOAD_green, LOAD_kept_green};
	static const enum load_family_name blocks[] = {LOAD_plain, LOAD_pitched, LOAD_array,
		LOAD_sparse, LOAD_second_context, LOAD_context, LOAD_ipc, LOAD_deferred, LOAD_green,
		LOAD_kept_green};
	unsigned codes = 0, others = 0, arrays = 0;

	for (unsigned i = 0; i < program.count; i++) {
		if (program.step[i].verb != PROGRAM_TAKE)
			continue;
		for (unsigned k = 0; k < ARRAY_SIZE(code); k++)
			codes += program.step[i].family == code[k];
		for (unsigned k = 0; k < ARRAY_SIZE(blocks); k++)
			others += program.step[i].family == blocks[k];
		arrays += program.step[i].family == LOAD_array;
	}
	return codes ? others : program.threads > 1 ? arrays : 0;
}

static int run_program(const char *path, const char *region)
{
	read_program(path);
	begin(region, program.quota_mib * MIB);
	judge_allow_chunks(shared_chunks());
	judge_allow_heap(is_taken(LOAD_graph_change) ? HEAP_BYTES : 0);
	baton_begin(program.threads, watch);
	for (unsigned i = 0; i < program.threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			judge_fail("broken", "no threads");
	for (unsigned i = 0; i < program.threads; i++)
		pthread_join(workers[i].thread, NULL);
	end();
	printf("%lu yields\n", baton_yields());
	return 0;
}

static enum load_family_name family_named(const char *name)
{
	for (unsigned i = 0; i < LOAD_FAMILIES; i++)
		if (strcmp(load_family_text((enum load_family_name)i), name) == 0)
			return (enum load_family_name)i;
	printf("broken: no family %s\n", name);
	exit(1);
}

static int run_rounds(const char *name, uint64_t rounds, const char *region)
{
	enum load_family_name family = family_named(name);
	struct load *l = &workers[0].load;
	uint64_t refused = 0;
	CUresult r = CUDA_SUCCESS;

	program = (struct program){.mode = PROGRAM_HONEST, .threads = 1};
	may_stay = family == LOAD_shared_pool;
	begin(region, ROUNDS_QUOTA_MIB * MIB);
	judge_allow_heap(family == LOAD_graph_change ? HEAP_BYTES : 0);
	if (l->weight[family] == 0) {
		printf("no rounds: it is for hostile programs\n");
		return 0;
	}
	for (uint64_t i = 0; i < rounds; i++) {
		l->state = hash_u64(i) | 1;
		r = load_take(l, family, (unsigned)i);
		refused += r == CUDA_ERROR_OUT_OF_MEMORY;
		if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY)
			judge_fail("error", "round %llu: %d", (unsigned long long)i, (int)r);
		while (l->held_count > load_below(l, ROUNDS_HELD)) {
			struct load_held held = l->held[0];

			l->held[0] = l->held[--l->held_count];
			must("give", held.family->give(l, &held));
		}
		if (i % JUDGED_EVERY == 0)
			judge_now("between rounds");
	}
	end();
	printf("%llu rounds, %llu refused\n", (unsigned long long)rounds,
		(unsigned long long)refused);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 5 && strcmp(argv[1], "rounds") == 0)
		return run_rounds(argv[2], strtoull(argv[3], NULL, 10), argv[4]);
	if (argc != 3) {
		printf("usage: play PROGRAM REGION | play rounds FAMILY COUNT REGION\n");
		return 64;
	}
	alarm(SECONDS_MOST);
	return run_program(argv[1], argv[2]);
}

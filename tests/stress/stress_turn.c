/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns among processes that are killed, stopped and started at random. Each notes in shared memory from when
 * to when it believed in its turn; no two slices' times may overlap, and nobody who lives is forgotten.
 */
#include <unistd.h>

#include "base/fault.h"
#include "region/turn_word.h"
#include "tests/stress/random.h"
#include "tests/stress/turn_slice.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define WORKERS	  7u
#define SLICES	  6u /* the last two workers are of one slice */
#define ROUNDS	  400u
#define NOTES	  20000u
#define LOOKS	  4096u
#define MOMENT_NS UINT64_C(100000000) /* one wait; who was stopped meanwhile did not wait longer */
#define ONE_NS	  UINT64_C(20000000)  /* one turn or claim, until it is looked at again */

struct note {
	uint64_t from_ns, to_ns;
};

/* From when to when the worker's slice did not believe another one, or one of its turns or claims. */
struct distrust {
	unsigned slice;
	uint64_t from_ns, to_ns;
};

struct worker {
	unsigned number, slice;
	char folder[300];
	_Atomic uint32_t note_count, distrust_count;
	_Atomic uint64_t turns, longest_ns;
	struct note notes[NOTES];
	struct distrust distrusts[LOOKS];
};

static struct random pauses;
static bool is_paused; /* now and then, where it hurts most */

/* As if the process lost its processor, or was stopped, between two steps. */
void fault_hit(const char *place)
{
	if (is_paused && random_below(&pauses, 100) == 0)
		sleep_ns(1000 * random_below(&pauses, 8000));
}

bool fault_is_out_of_memory(void)
{
	return false;
}

static void spin_until(uint64_t end_ns)
{
	while (clock_now_ns() < end_ns)
		;
}

/* Believed from now on, to the end of what it announced, as far as the record says so, too. */
static void note_begin(struct worker *w, uint64_t end_ns)
{
	uint64_t now = clock_now_ns(), word = atomic_load(&turn.own->face.word);
	uint32_t n = atomic_load(&w->note_count);

	if (n == NOTES || TURN_WORD_STATE(word) != TURN_HOLD || (word & TURN_WORD_FRESH) ||
		TURN_WORD_UNTIL_NS(word) < now || end_ns < now)
		return;
	if (TURN_WORD_UNTIL_NS(word) < end_ns)
		end_ns = TURN_WORD_UNTIL_NS(word);
	w->notes[n] = (struct note){.from_ns = now, .to_ns = end_ns};
	atomic_store(&w->note_count, n + 1);
}

/* No longer believed: what is to end before its time is so noted before it ends. */
static void note_end(struct worker *w)
{
	uint64_t now = clock_now_ns();
	uint32_t n = atomic_load(&w->note_count);

	for (uint32_t i = n > 64 ? n - 64 : 0; i < n; i++)
		if (w->notes[i].to_ns > now)
			w->notes[i].to_ns = now;
}

static const struct distrust *find_distrust(const struct worker *w, unsigned slice, uint64_t at_ns)
{
	for (uint32_t i = 0; i < atomic_load(&w->distrust_count); i++)
		if (w->distrusts[i].slice == slice && w->distrusts[i].from_ns <= at_ns &&
			at_ns <= w->distrusts[i].to_ns)
			return &w->distrusts[i];
	return NULL;
}

/* The owner is to blame for a while; or one turn stood in the way for too long, or its claims came to none (turn_order.h). */
static uint64_t distrust_end_ns(const struct turn_peer *peer, uint64_t now)
{
	if (turn_order_is_ignored(peer, now))
		return peer->doubt.ignored_until_ns;
	if (peer->claim.state == TURN_CLAIM && peer->doubt.claimed_ns > TURN_CLAIMS_NS)
		return now + ONE_NS;
	return peer->doubt.is_outlasted && peer->claim.since_ns <= peer->doubt.outlasted_ns
		       ? now + ONE_NS
		       : 0;
}

static void note_distrusts(struct worker *w)
{
	for (unsigned i = 0; i < turn.peer_count; i++) {
		uint64_t now = clock_now_ns(), to = distrust_end_ns(&turn.peers[i], now);
		uint32_t n = atomic_load(&w->distrust_count);
		unsigned slice = (unsigned)(turn.peer_records[i].name[1] - '0');
		const struct distrust *known = find_distrust(w, slice, now);

		if (to < now || n == LOOKS || (known && known->to_ns >= to))
			continue;
		w->distrusts[n] = (struct distrust){slice, now, to};
		atomic_store(&w->distrust_count, n + 1);
	}
}

/* Waits for the turn; at most as long as a test may take. */
static bool get_turn(struct worker *w, uint64_t batch_ns, uint64_t *ret_end_ns)
{
	uint64_t start = clock_now_ns(), now = start, before, waited_ns = 0, look, longest;

	while (turn_hold(&turn, 1, now, now + batch_ns, &look) != TURN_HELD) {
		before = now;
		note_distrusts(w);
		turn_wait(&turn, look);
		now = clock_now_ns();
		waited_ns += now - before < MOMENT_NS ? now - before : MOMENT_NS;
		if (waited_ns > LONGEST_NS)
			return false;
	}
	*ret_end_ns = now + batch_ns;
	longest = atomic_load(&w->longest_ns);
	if (clock_now_ns() - start > longest)
		atomic_store(&w->longest_ns, clock_now_ns() - start);
	return true;
}

/* Batches, idle times and departures as they come, until it is killed or the channel says so. */
static int work(int fd, void *argument)
{
	struct worker *w = argument;
	struct random r = random_stream(clock_now_ns(), (uint64_t)getpid());

	pauses = random_stream((uint64_t)getpid(), clock_now_ns());
	is_paused = true;
	if (open_turn(w->folder, w->slice, w->number) != 0)
		return 1;
	for (;;) {
		uint64_t batch = 50000 + 1000 * random_below(&r, 1500), end;

		/* What it announces next replaces what it announced before. */
		note_end(w);
		if (!get_turn(w, batch, &end))
			return 2;
		/* First: whom it ceased to believe in just now is why it has the turn. */
		note_distrusts(w);
		note_begin(w, end);
		spin_until(clock_now_ns() + (random_below(&r, 4) ? batch / 8 : 0));
		atomic_fetch_add(&w->turns, 1);
		/* Nobody else writes the record. */
		if (turn.tampered_ns)
			return 3;
		if (turn_is_wanted(&turn, 1, clock_now_ns(), clock_now_ns(), 0) ||
			random_below(&r, 50) == 0) {
			note_end(w);
			if (random_below(&r, 10) == 0)
				turn_leave(&turn);
			else
				turn_release(&turn, clock_now_ns());
		} else if (random_below(&r, 3) == 0) {
			note_end(w);
			turn_idle(&turn, 0, clock_now_ns());
			if (random_below(&r, 10) == 0)
				sleep_ns(1000 * random_below(&r, 3000));
		}
		if (random_below(&r, 500) == 0) {
			note_end(w);
			turn_close(&turn);
			return 0;
		}
	}
}

/* Whether any process of a slice does so: it may have taken the turn for the others. */
static bool slice_distrusts(
	const struct worker *workers, unsigned who, unsigned whom, uint64_t at_ns)
{
	for (unsigned i = 0; i < WORKERS; i++)
		if (workers[i].slice == who && find_distrust(&workers[i], whom, at_ns))
			return true;
	return false;
}

/* Whether one of two slices did not believe the other when it took the turn. */
static bool are_strangers(const struct worker *workers, const struct worker *a,
	const struct worker *b, uint64_t at_ns)
{
	return slice_distrusts(workers, a->slice, b->slice, at_ns) ||
	       slice_distrusts(workers, b->slice, a->slice, at_ns);
}

static unsigned overlaps(const struct worker *workers, const struct worker *a,
	const struct worker *b, unsigned *excused)
{
	uint32_t i = 0, k = 0, na = atomic_load(&a->note_count), nb = atomic_load(&b->note_count);
	unsigned found = 0;

	while (i < na && k < nb) {
		const struct note *x = &a->notes[i], *y = &b->notes[k];

		if (x->from_ns < y->to_ns && y->from_ns < x->to_ns) {
			/* Who took it first may have passed over a claim that became a hold afterwards. */
			if (are_strangers(workers, a, b, x->from_ns) ||
				are_strangers(workers, a, b, y->from_ns))
				(*excused)++;
			else {
				found++;
				if (found < 5)
					print_error("s%u %llu-%llu s%u %llu-%llu\n", a->slice,
						(unsigned long long)x->from_ns,
						(unsigned long long)x->to_ns, b->slice,
						(unsigned long long)y->from_ns,
						(unsigned long long)y->to_ns);
			}
		}
		if (x->to_ns < y->to_ns)
			i++;
		else
			k++;
	}
	return found;
}

static void assert_no_overlap(const struct worker *workers)
{
	unsigned found = 0, excused = 0;

	for (unsigned a = 0; a < WORKERS; a++)
		for (unsigned b = a + 1; b < WORKERS; b++)
			if (workers[a].slice != workers[b].slice)
				found += overlaps(workers, &workers[a], &workers[b], &excused);
	print_message("overlaps: %u, and %u where one was not believed\n", found, excused);
	assert_int_equal(found, 0);
}

static void restart_who_left(
	struct worker *workers, struct child *children, const bool *is_stopped, unsigned *exits)
{
	int status;

	for (unsigned k = 0; k < WORKERS; k++)
		if (!is_stopped[k] && waitpid(children[k].pid, &status, WNOHANG) > 0) {
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			close(children[k].fd);
			children[k] = child_start(work, &workers[k]);
			++*exits;
		}
}

static bool had_all_a_turn(const struct worker *workers)
{
	for (unsigned i = 0; i < WORKERS; i++)
		if (!atomic_load(&workers[i].turns))
			return false;
	return true;
}

/* Nobody is stopped or killed any more. */
static void expect_all_served(
	struct worker *workers, struct child *children, bool *is_stopped, unsigned *exits)
{
	uint64_t deadline_ns = clock_now_ns() + LONGEST_NS;

	for (unsigned i = 0; i < WORKERS; i++) {
		kill(children[i].pid, SIGCONT);
		is_stopped[i] = false;
	}
	while (!had_all_a_turn(workers) && clock_now_ns() < deadline_ns) {
		sleep_ns(5000000);
		restart_who_left(workers, children, is_stopped, exits);
	}
	assert_true(had_all_a_turn(workers));
}

static void no_two_slices_believe_in_the_turn_whoever_dies_or_is_stopped(void **state)
{
	struct scratch *s = *state;
	struct worker *workers = child_shared_memory(WORKERS * sizeof(struct worker));
	struct random r = random_stream(random_seed(), 0);
	struct child children[WORKERS];
	bool is_stopped[WORKERS] = {false};
	unsigned kills = 0, stops = 0, exits = 0;

	assert_non_null(workers);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].number = i;
		workers[i].slice = i < SLICES ? i : SLICES - 1;
		snprintf(workers[i].folder, sizeof(workers[i].folder), "%s/turns", s->folder);
		children[i] = child_start(work, &workers[i]);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = random_below(&r, WORKERS), what = random_below(&r, 4);

		sleep_ns(1000 * random_below(&r, 20000));
		restart_who_left(workers, children, is_stopped, &exits);
		if (what == 0) {
			child_kill(&children[i]);
			/* The dead believe nothing; their slot's next owner says so to their slice. */
			note_end(&workers[i]);
			is_stopped[i] = false;
			children[i] = child_start(work, &workers[i]);
			kills++;
		} else if (what == 1 && !is_stopped[i]) {
			kill(children[i].pid, SIGSTOP);
			is_stopped[i] = true;
			stops++;
		} else if (is_stopped[i]) {
			kill(children[i].pid, SIGCONT);
			is_stopped[i] = false;
		}
	}
	expect_all_served(workers, children, is_stopped, &exits);
	for (unsigned i = 0; i < WORKERS; i++) {
		child_kill(&children[i]);
		print_message(
			"worker %u of s%u: %llu batches, longest wait %.1f ms, %u distrusts\n", i,
			workers[i].slice, (unsigned long long)atomic_load(&workers[i].turns),
			(double)atomic_load(&workers[i].longest_ns) / 1e6,
			atomic_load(&workers[i].distrust_count));
	}
	print_message("%u killed, %u stopped, %u left\n", kills, stops, exits);
	assert_no_overlap(workers);
	munmap(workers, WORKERS * sizeof(struct worker));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(no_two_slices_believe_in_the_turn_whoever_dies_or_is_stopped),
	};

	return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}

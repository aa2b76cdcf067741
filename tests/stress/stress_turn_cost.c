/* SPDX-License-Identifier: Apache-2.0 */
/* What a turn costs, printed and not judged; and that each slice has its own. */
#include "tests/stress/turn_slice.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

/* What is measured of the hand-overs. */
struct relay {
	char folder[300];
	_Atomic uint32_t next_slice;
	_Atomic uint64_t released_ns, handovers, lost_ns, longest_ns, cpu_ns;
	uint64_t end_ns;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Holds its turn with batches of 1 ms, as the device would work on them: the process sleeps. */
static int run_relay(int fd, void *argument)
{
	struct relay *relay = argument;
	unsigned me = atomic_fetch_add(&relay->next_slice, 1);
	uint64_t now, look, released, begin;

	if (open_turn(relay->folder, me, 0) != 0)
		return 1;
	/* Until everybody has found everybody. */
	sleep_ns(150000000);
	begin = cpu_ns();
	/* and there was one: on a busy machine they may begin late */
	while ((now = clock_now_ns()) < relay->end_ns ||
		(!atomic_load(&relay->handovers) && now < relay->end_ns + LONGEST_NS)) {
		if (turn_hold(&turn, 1, now, now + 1000000, &look) != TURN_HELD) {
			turn_wait(&turn, look);
			continue;
		}
		released = atomic_exchange(&relay->released_ns, 0);
		now = clock_now_ns();
		if (released) {
			atomic_fetch_add(&relay->handovers, 1);
			atomic_fetch_add(&relay->lost_ns, now - released);
			if (now - released > atomic_load(&relay->longest_ns))
				atomic_store(&relay->longest_ns, now - released);
		}
		sleep_ns(900000);
		if (turn_is_wanted(&turn, 1, clock_now_ns(), clock_now_ns(), 0)) {
			atomic_store(&relay->released_ns, clock_now_ns());
			turn_release(&turn, clock_now_ns());
		}
	}
	atomic_fetch_add(&relay->cpu_ns, cpu_ns() - begin);
	turn_close(&turn);
	return 0;
}

static void measure_relay(const struct scratch *s, unsigned count)
{
	struct relay *relay = child_shared_memory(sizeof(*relay));
	struct child children[8];
	uint64_t handovers;

	if (!relay) {
		fail();
		return;
	}
	snprintf(relay->folder, sizeof(relay->folder), "%s/relay%u", s->folder, count);
	relay->end_ns = clock_now_ns() + 1650000000u;
	for (unsigned i = 0; i < count; i++)
		children[i] = child_start(run_relay, relay);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(child_wait(&children[i]), 0);
	handovers = atomic_load(&relay->handovers);
	assert_true(handovers > 0);
	print_message("%u slices: %llu hand-overs in 1.5 s, %.0f us each, the longest %.0f us; "
		      "processor %.1f %% in all\n",
		count, (unsigned long long)handovers,
		(double)atomic_load(&relay->lost_ns) / (double)handovers / 1e3,
		(double)atomic_load(&relay->longest_ns) / 1e3,
		(double)atomic_load(&relay->cpu_ns) / 1.5e7);
	munmap(relay, sizeof(*relay));
}

static void a_turn_goes_from_slice_to_slice(void **state)
{
	measure_relay(*state, 2);
	measure_relay(*state, 8);
}

/* Is there, and says so now and then. */
static int be_there(int fd, void *argument)
{
	struct relay *relay = argument;

	if (open_turn(relay->folder, atomic_fetch_add(&relay->next_slice, 1), 0) != 0)
		return 1;
	child_say(fd, 1);
	for (;;) {
		turn_count_peers(&turn, clock_now_ns());
		sleep_ns(50000000);
	}
}

#define CALLS 200000u

static void measure_calls(const char *who)
{
	uint64_t start, look, now, hold = 0, loop, claim;
	unsigned waits = 0;

	start = clock_now_ns();
	for (unsigned i = 0; i < CALLS; i++) {
		now = clock_now_ns();
		waits += turn_hold(&turn, 1, now, now + 20000, &look) != TURN_HELD;
		waits += turn_is_wanted(&turn, 1, now, now, now);
	}
	hold = (clock_now_ns() - start) / CALLS;
	start = clock_now_ns();
	for (unsigned i = 0; i < CALLS; i++) {
		now = clock_now_ns();
		waits += turn_hold(&turn, 1, now, now + 20000, &look) != TURN_HELD;
		turn_idle(&turn, 0, now);
	}
	loop = (clock_now_ns() - start) / CALLS;
	start = clock_now_ns();
	for (unsigned i = 0; i < CALLS / 10; i++) {
		now = clock_now_ns();
		waits += turn_hold(&turn, 1, now, now + 20000, &look) != TURN_HELD;
		turn_release(&turn, now);
	}
	claim = (clock_now_ns() - start) / (CALLS / 10);
	print_message("%s: hold and ask %llu ns, hold and idle %llu ns, claim and release %llu ns; "
		      "%u waits\n",
		who, (unsigned long long)hold, (unsigned long long)loop, (unsigned long long)claim,
		waits);
}

static void a_turn_that_nobody_wants_costs_next_to_nothing(void **state)
{
	struct scratch *s = *state;
	struct relay *relay = child_shared_memory(sizeof(*relay));
	struct child children[7];
	uint64_t deadline_ns;

	if (!relay) {
		fail();
		return;
	}
	snprintf(relay->folder, sizeof(relay->folder), "%s/cost", s->folder);
	assert_int_equal(open_turn(relay->folder, atomic_fetch_add(&relay->next_slice, 1), 0), 0);
	measure_calls("alone");
	for (unsigned i = 0; i < 7; i++) {
		children[i] = child_start(be_there, relay);
		assert_int_equal(child_hear(children[i].fd), 1);
	}
	sleep_ns(
		150000000); /* those who just came ask for more care, which is not what is measured */
	deadline_ns = clock_now_ns() + LONGEST_NS;
	while (turn_count_peers(&turn, clock_now_ns()) != 7 && clock_now_ns() < deadline_ns)
		sleep_ns(5000000);
	assert_int_equal(turn_count_peers(&turn, clock_now_ns()), 7);
	measure_calls("with 7 idle others");
	for (unsigned i = 0; i < 7; i++)
		child_kill(&children[i]);
	turn_close(&turn);
	munmap(relay, sizeof(*relay));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_turn_goes_from_slice_to_slice),
		SCRATCH_TEST(a_turn_that_nobody_wants_costs_next_to_nothing),
	};

	return cmocka_run_group_tests_name("turn_cost", tests, NULL, NULL);
}

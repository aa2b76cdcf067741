/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes of a slice, one of which is stopped, or dies, before it says its word to others. */
#include <string.h>

#include "base/fault.h"
#include "region/turn_record.h"
#include "region/turn_word.h"
#include "tests/stress/turn_slice.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

static struct turn sibling;
static void (*meanwhile)(void); /* what others do while the process is stopped there, once */

void fault_hit(const char *place)
{
	void (*others)(void) = meanwhile;

	if (others && !strcmp(place, "turn: before it is said")) {
		meanwhile = NULL;
		others();
	}
}

bool fault_is_out_of_memory(void)
{
	return false;
}

static void look_at_own(void)
{
	turn_count_peers(&sibling, clock_now_ns());
}

/* For longer than this process loses its processor: nothing is said of a turn that was over before it is given back. */
#define HOLD_NS UINT64_C(100000000)

static void want(struct turn *t)
{
	uint64_t now = clock_now_ns(), look;
	int r = turn_hold(t, 1, now, now + HOLD_NS, &look);

	assert_true(r == TURN_HELD || r == TURN_E_WAIT);
}

/* The sibling goes on, and gives the turn back. */
static void go_on(void)
{
	look_at_own();
	want(&sibling);
	turn_release(&sibling, clock_now_ns());
	turn_leave(&sibling);
}

static uint64_t shown(void)
{
	return atomic_load(&turn.own->face.word);
}

static void expect_no_tampering(void)
{
	uint64_t now = clock_now_ns();

	look_at_own();
	assert_false(turn_word_is_tampered(&sibling, now));
	assert_false(turn_word_is_tampered(&turn, now));
	assert_false(turn_is_hidden(&sibling, now) || turn_is_hidden(&turn, now));
	assert_int_equal(shown(), atomic_load(&turn.books->word));
}

static void take_and_give_back(void (*others)(void))
{
	meanwhile = others;
	want(&turn);
	expect_no_tampering();
	meanwhile = others;
	turn_release(&turn, clock_now_ns());
	expect_no_tampering();
	assert_null(meanwhile);
}

static void open_siblings(const struct scratch *s)
{
	sibling = (struct turn)TURN_NULL;
	assert_int_equal(open_turn(s->file, 0, 0), 0);
	assert_int_equal(turn_open(&sibling, s->file, UUID, "s0", 1, clock_now_ns()), 0);
}

static void who_loses_its_processor_before_it_says_its_word_is_no_tampering(void **state)
{
	open_siblings(*state);
	for (unsigned i = 0; i < 20; i++) {
		take_and_give_back(look_at_own);
		take_and_give_back(go_on);
	}
	turn_close(&sibling);
	turn_close(&turn);
}

/* Dies there: what is changed afterwards is found. */
static void what_is_changed_after_a_death_before_the_word_is_said_is_found(void **state)
{
	uint64_t word;

	open_siblings(*state);
	word = TURN_WORD(TURN_HOLD, clock_now_ns() + 40000000);
	atomic_store(&turn.books->word, word);
	look_at_own();
	assert_int_equal(shown(), word);
	assert_false(turn_word_is_tampered(&sibling, clock_now_ns()));
	atomic_store(&turn.own->face.word, 0);
	look_at_own();
	assert_int_equal(shown(), word);
	assert_true(turn_word_is_tampered(&sibling, clock_now_ns()));
	assert_true(turn_is_hidden(&sibling, clock_now_ns()));
	turn_close(&sibling);
	turn_close(&turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(who_loses_its_processor_before_it_says_its_word_is_no_tampering),
		SCRATCH_TEST(what_is_changed_after_a_death_before_the_word_is_said_is_found),
	};

	return cmocka_run_group_tests_name("turn_word", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices belong together: scores as the scheduler reads them, and sets against all sets there are. */
#include "policy/topology.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/cmocka_ready.h"

static void join(struct topology *t, unsigned a, unsigned b, uint8_t way, uint8_t links)
{
	t->pair[a][b] = t->pair[b][a] = (struct topology_pair){way, links};
}

/* Pairs behind a switch, fours below a bridge, half of them on each socket; switches of NVLink where links is not 0. */
static struct topology machine(unsigned count, uint8_t links)
{
	struct topology t = {.count = count};

	for (unsigned a = 0; a < count; a++) {
		t.switch_links[a] = links;
		for (unsigned b = a + 1; b < count; b++)
			join(&t, a, b,
				a / 2 == b / 2			 ? TOPOLOGY_WAY_SWITCH
				: a / 4 == b / 4		 ? TOPOLOGY_WAY_BRIDGE
				: 2 * a / count == 2 * b / count ? TOPOLOGY_WAY_SOCKET
								 : TOPOLOGY_WAY_SOCKETS,
				0);
	}
	return t;
}

static void a_score_is_the_way_and_the_links(void **state)
{
	struct topology t = machine(8, 18);

	assert_int_equal(topology_score(&t, 0, 0), 0);
	assert_int_equal(topology_score(&t, 0, 1), 50 + 1800);
	assert_int_equal(topology_score(&t, 0, 2), 30 + 1800);
	assert_int_equal(topology_score(&t, 0, 4), 10 + 1800);
	t.switch_links[4] = 16;
	assert_int_equal(topology_score(&t, 0, 4), 10 + 1600);
	t.switch_links[4] = 0;
	assert_int_equal(topology_score(&t, 0, 4), 10);
	join(&t, 0, 4, TOPOLOGY_WAY_BOARD, 4);
	assert_int_equal(topology_score(&t, 4, 0), 60 + 400);
	join(&t, 0, 4, TOPOLOGY_WAY_UNKNOWN, 0);
	assert_int_equal(topology_score(&t, 4, 0), 0);
}

static void what_one_side_alone_sees_counts_nothing(void **state)
{
	struct topology t = machine(4, 0);

	assert_false(topology_is_lopsided(&t, 0, 1));
	t.pair[0][1].links = 4;
	assert_true(topology_is_lopsided(&t, 0, 1) && topology_is_lopsided(&t, 1, 0));
	assert_int_equal(topology_score(&t, 0, 1), 0);
	assert_int_equal(topology_score(&t, 1, 0), 0);
	/* Another number of links is no other kind of link. */
	t.pair[1][0].links = 2;
	assert_int_equal(topology_score(&t, 0, 1), 450);
	assert_int_equal(topology_score(&t, 1, 0), 250);
}

static unsigned sum_of(const struct topology *t, const unsigned *devices, unsigned count)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < count; j++)
			sum += topology_score(t, devices[i], devices[j]);
	return sum;
}

/* The most that any set reaches, by trying all. */
static unsigned best_of(const struct topology *t, const struct topology_wish *wish, unsigned from,
	unsigned *taken, unsigned count)
{
	unsigned best = 0;

	if (count == wish->wanted)
		return sum_of(t, taken, count);
	for (unsigned i = from; i < wish->count; i++) {
		unsigned sum;

		taken[count] = wish->free[i];
		sum = best_of(t, wish, i + 1, taken, count + 1);
		best = sum > best ? sum : best;
		if (i < wish->must)
			break;
	}
	return best;
}

/* What is chosen is of the wish, in its order, each once, and holds what must be in it. */
static unsigned chosen_sum(const struct topology *t, const struct topology_wish *wish)
{
	unsigned chosen[TOPOLOGY_MAX], at = 0;

	assert_int_equal(topology_choose(t, wish, chosen), 0);
	for (unsigned i = 0; i < wish->count && at < wish->wanted; i++) {
		if (i < wish->must)
			assert_int_equal(chosen[at], wish->free[i]);
		at += chosen[at] == wish->free[i];
	}
	assert_int_equal(at, wish->wanted);
	return sum_of(t, chosen, wish->wanted);
}

/* A mixed order of a part of the devices. */
static unsigned some_of(unsigned count, unsigned *ret_free)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++)
		if (rand() % 4) {
			unsigned place = (unsigned)rand() % (kept + 1);

			ret_free[kept] = ret_free[place];
			ret_free[place] = i;
			kept++;
		}
	return kept;
}

static void on_machines_as_they_are_made_the_best_set_is_found(void **state)
{
	static const struct {
		unsigned count;
		uint8_t links;
	} made[] = {{2, 18}, {4, 0}, {8, 0}, {8, 18}, {16, 0}, {16, 12}};
	unsigned free[TOPOLOGY_MAX], taken[TOPOLOGY_MAX];

	srand(1);
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		struct topology t = machine(made[i].count, made[i].links);

		for (unsigned round = 0; round < 20; round++) {
			struct topology_wish wish = {.free = free};

			wish.count = some_of(made[i].count, free);
			for (wish.wanted = 2; wish.wanted <= wish.count; wish.wanted++) {
				wish.must = (unsigned)rand() % 3 ? 0 : 1;
				assert_int_equal(
					chosen_sum(&t, &wish), best_of(&t, &wish, 0, taken, 0));
			}
		}
	}
}

static struct topology random_machine(unsigned count)
{
	struct topology t = {.count = count};

	for (unsigned a = 0; a < count; a++)
		for (unsigned b = a + 1; b < count; b++)
			join(&t, a, b, (uint8_t)(1 + rand() % 6), (uint8_t)(rand() % 4));
	return t;
}

static void up_to_sixteen_devices_the_best_set_is_found_of_any_machine(void **state)
{
	unsigned free[TOPOLOGY_MAX], taken[TOPOLOGY_MAX];

	srand(2);
	for (unsigned round = 0; round < 60; round++) {
		unsigned count = round < 50 ? 8 : TOPOLOGY_EXACT;
		struct topology t = random_machine(count);
		struct topology_wish wish = {.free = free, .must = round % 3};

		wish.count = some_of(count, free);
		for (wish.wanted = 2; wish.wanted <= wish.count; wish.wanted++)
			assert_int_equal(chosen_sum(&t, &wish), best_of(&t, &wish, 0, taken, 0));
	}
}

/* Nobody builds them so large; the search ends all the same, with four sockets' best or nearly. */
static void beyond_sixteen_the_search_is_bounded(void **state)
{
	unsigned free[TOPOLOGY_MAX];
	struct topology t = machine(TOPOLOGY_MAX, 0);
	struct topology_wish wish = {.free = free, .count = TOPOLOGY_MAX, .wanted = 4};

	for (unsigned i = 0; i < TOPOLOGY_MAX; i++)
		free[i] = i;
	assert_int_equal(chosen_sum(&t, &wish), 2 * (2 * 50 + 4 * 30));
	srand(3);
	t = random_machine(TOPOLOGY_MAX);
	for (wish.wanted = 2; wish.wanted <= TOPOLOGY_MAX; wish.wanted *= 2)
		assert_true(chosen_sum(&t, &wish) >= sum_of(&t, free, wish.wanted));
}

static void one_alone_leaves_the_others_together(void **state)
{
	static const unsigned free[] = {0, 1, 2, 4, 5};
	const struct topology_wish wish = {.free = free, .count = 5, .wanted = 1};
	struct topology t = machine(8, 0);
	unsigned device;

	assert_int_equal(topology_choose(&t, &wish, &device), 0);
	assert_int_equal(device, 2);
	join(&t, 1, 2, TOPOLOGY_WAY_BOARD, 0);
	assert_int_equal(topology_choose(&t, &wish, &device), 0);
	assert_int_equal(device, 4);
}

static void of_equal_sets_the_first_is_taken(void **state)
{
	static const unsigned free[] = {7, 3, 1, 5, 0, 2, 4, 6, 8, 9};
	struct topology t = {.count = 10};
	unsigned chosen[3];

	for (unsigned count = 5; count <= 10; count += 5) {
		const struct topology_wish wish = {.free = free, .count = count, .wanted = 3};

		assert_int_equal(topology_choose(&t, &wish, chosen), 0);
		assert_memory_equal(chosen, free, sizeof(chosen));
	}
}

static void more_than_there_are_is_refused(void **state)
{
	static const unsigned free[] = {0, 1};
	struct topology t = machine(2, 0);
	unsigned chosen[TOPOLOGY_MAX];

	assert_int_equal(
		topology_choose(&t, &(struct topology_wish){free, 2, 0, 3}, chosen), -EINVAL);
	assert_int_equal(
		topology_choose(&t, &(struct topology_wish){free, 2, 0, 0}, chosen), -EINVAL);
	assert_int_equal(
		topology_choose(&t, &(struct topology_wish){free, 2, 2, 1}, chosen), -EINVAL);
	assert_int_equal(topology_choose(&t, &(struct topology_wish){free, 2, 2, 2}, chosen), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_score_is_the_way_and_the_links),
		cmocka_unit_test(what_one_side_alone_sees_counts_nothing),
		cmocka_unit_test(on_machines_as_they_are_made_the_best_set_is_found),
		cmocka_unit_test(up_to_sixteen_devices_the_best_set_is_found_of_any_machine),
		cmocka_unit_test(beyond_sixteen_the_search_is_bounded),
		cmocka_unit_test(one_alone_leaves_the_others_together),
		cmocka_unit_test(of_equal_sets_the_first_is_taken),
		cmocka_unit_test(more_than_there_are_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

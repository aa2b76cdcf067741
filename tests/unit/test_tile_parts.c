/* SPDX-License-Identifier: Apache-2.0 */
/* Which tiles a part takes out, beside a list that is gone through whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tenant/memory/tile_parts.h"
#include "tests/unit/cmocka_ready.h"

#define ARRAYS 3
#define MOST   256

static struct tile_part box(uint64_t resource, uint64_t x, uint64_t y, uint64_t w, uint64_t h)
{
	return (struct tile_part){.resource = resource, .at = {x, y, 0}, .extent = {w, h, 1}};
}

static struct mapped_tile *put(struct tile_part part, uint32_t serial, uint64_t life)
{
	struct mapped_tile *tile = calloc(1, sizeof(*tile));

	assert_non_null(tile);
	tile->part = part;
	tile->serial = serial;
	tile->life = life;
	assert_true(tile_parts_put(tile));
	return tile;
}

/* Frees the list. */
static unsigned count(struct mapped_tile *list)
{
	unsigned n = 0;

	for (struct mapped_tile *next; list; list = next, n++) {
		next = list->next;
		free(list);
	}
	return n;
}

static unsigned take(struct tile_part part)
{
	return count(tile_parts_take_within(&part));
}

static void a_part_takes_out_what_lies_wholly_within(void **unused)
{
	put(box(7, 0, 0, 2, 1), 1, 1);
	put(box(7, 4, 0, 1, 1), 2, 1);
	assert_int_equal(take(box(7, 0, 0, 1, 1)), 0);
	assert_int_equal(take(box(7, 1, 0, 4, 1)), 1);
	assert_int_equal(take(box(8, 0, 0, 9, 9)), 0);
	assert_int_equal(take(box(7, 0, 0, 9, 9)), 1);
	/* Several of one part. */
	put(box(7, 0, 0, 1, 1), 1, 1);
	put(box(7, 0, 0, 1, 1), 2, 1);
	assert_int_equal(take(box(7, 0, 0, 1, 1)), 2);
}

static void levels_layers_and_tails_are_apart(void **unused)
{
	struct tile_part level = box(7, 0, 0, 1, 1), layer = level, tail = level;

	level.level = 1;
	layer.layer = 1;
	tail.type = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	put(level, 1, 1);
	put(layer, 2, 1);
	put(tail, 3, 1);
	assert_int_equal(take(box(7, 0, 0, 9, 9)), 0);
	assert_int_equal(take(tail), 1);
	assert_int_equal(count(tile_parts_take_array(7)), 2);
}

/* A part that ends beyond all numbers lies in none that is smaller. */
static void numbers_do_not_wrap(void **unused)
{
	put(box(7, UINT64_MAX, 0, 2, 1), 1, 1);
	assert_int_equal(take(box(7, 0, 0, 100, 1)), 0);
	assert_int_equal(take(box(7, 2, 0, UINT64_MAX - 1, 1)), 0);
	assert_int_equal(take(box(7, UINT64_MAX, 0, 2, 1)), 1);
}

static void an_array_and_a_life_take_theirs_alone(void **unused)
{
	put(box(7, 0, 0, 1, 1), 1, 1);
	put(box(7, 1, 0, 1, 1), 2, 2);
	put(box(8, 0, 0, 1, 1), 3, 1);
	put(box(8, 1, 0, 1, 1), 4, 1);
	assert_int_equal(count(tile_parts_take_life(3)), 0);
	assert_int_equal(count(tile_parts_take_life(1)), 3);
	assert_int_equal(count(tile_parts_take_array(8)), 0);
	assert_int_equal(count(tile_parts_take_array(7)), 1);
}

static struct tile_part random_part(void)
{
	return box(1 + (uint64_t)rand() % ARRAYS, (uint64_t)rand() % 8, (uint64_t)rand() % 4,
		1 + (uint64_t)rand() % 4, 1 + (uint64_t)rand() % 2);
}

static bool is_inside(const struct tile_part *a, const struct tile_part *b)
{
	return a->resource == b->resource && a->at[0] >= b->at[0] && a->at[1] >= b->at[1] &&
	       a->at[0] + a->extent[0] <= b->at[0] + b->extent[0] &&
	       a->at[1] + a->extent[1] <= b->at[1] + b->extent[1];
}

static void random_parts_are_as_in_a_plain_list(void **unused)
{
	static struct tile_part model[MOST];
	unsigned there = 0, expected;

	srand(1);
	for (unsigned i = 0; i < 50000; i++) {
		struct tile_part part = random_part();

		if (rand() % 3 && there < MOST) {
			put(part, 1, 1);
			model[there++] = part;
			continue;
		}
		expected = 0;
		for (unsigned k = 0; k < there;)
			if (is_inside(&model[k], &part)) {
				model[k] = model[--there];
				expected++;
			} else {
				k++;
			}
		assert_int_equal(take(part), expected);
	}
	assert_int_equal(count(tile_parts_take_life(1)), there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_takes_out_what_lies_wholly_within),
		cmocka_unit_test(levels_layers_and_tails_are_apart),
		cmocka_unit_test(numbers_do_not_wrap),
		cmocka_unit_test(an_array_and_a_life_take_theirs_alone),
		cmocka_unit_test(random_parts_are_as_in_a_plain_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

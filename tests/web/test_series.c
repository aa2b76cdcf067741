/* SPDX-License-Identifier: Apache-2.0 */
/* What devices and slices used in the last hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "web/series.h"

#define SECOND_NS UINT64_C(1000000000)
#define MIB	  (UINT64_C(1) << 20)

static char *written(const struct series_list *list)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	series_write(list, out);
	fclose(out);
	return text;
}

static void points_are_the_last_hour(void **state)
{
	struct series_list list = {.count = 0};
	struct series *s = NULL;
	char *text;

	for (unsigned i = 0; i < 3 * SERIES_POINTS / 2; i++) {
		uint64_t now_ns = SECOND_NS + i * SERIES_POINT_NS;

		series_begin(&list);
		s = series_see(&list, "a", NULL);
		series_set(s, now_ns, i * MIB, i % 2 ? SERIES_UNKNOWN : (int)i);
		series_end(&list, now_ns);
	}
	assert_int_equal(s->count, SERIES_POINTS);
	text = written(&list);
	assert_non_null(strstr(text, "\"memory_mib\":[60,61,"));
	assert_non_null(strstr(text, ",178,179],\"busy_permille\":[60,null,62,"));
	free(text);
	series_clear(&list);
}

static void a_point_has_the_mean(void **state)
{
	struct series_list list = {.count = 0};
	struct series *s;

	for (unsigned i = 0; i <= 30; i++) {
		series_begin(&list);
		s = series_see(&list, "a", NULL);
		series_set(s, (i + 1) * SECOND_NS, 0, i <= 10 ? 1000 : 100);
		series_end(&list, (i + 1) * SECOND_NS);
	}
	assert_int_equal(s->count, 2);
	assert_in_range(s->points[1].busy_permille, 390, 410);
	series_clear(&list);
}

static void rates_are_of_counters(void **state)
{
	struct series_list list = {.count = 0};
	struct series *s = series_see(&list, "a", NULL);

	series_count(s, 5 * SECOND_NS, (uint64_t[SERIES_COUNTERS]){7 * SECOND_NS});
	assert_false(s->has_rates);
	series_count(s, 7 * SECOND_NS, (uint64_t[SERIES_COUNTERS]){8 * SECOND_NS});
	assert_true(s->has_rates && s->rates[0] > 0.49 && s->rates[0] < 0.51);
	/* too soon after, it stays */
	series_count(s, 7 * SECOND_NS + 1, (uint64_t[SERIES_COUNTERS]){9 * SECOND_NS});
	assert_true(s->rates[0] < 0.51);
	/* a region that was made anew */
	series_count(s, 9 * SECOND_NS, (uint64_t[SERIES_COUNTERS]){0});
	assert_true(s->rates[0] == 0);
	series_clear(&list);
}

static void there_are_so_many_and_no_more(void **state)
{
	struct series_list list = {.count = 0};
	char key[16];
	unsigned id;

	series_begin(&list);
	for (unsigned i = 0; i < SERIES_MOST + 9; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(series_see(&list, key, NULL) != NULL, i < SERIES_MOST);
	}
	id = series_see(&list, "7", NULL)->id;
	series_end(&list, SECOND_NS);
	/* those that are not seen go, and no later one has their number */
	series_begin(&list);
	series_end(&list, 2 * SECOND_NS);
	assert_int_equal(list.count, 0);
	assert_true(series_see(&list, "7", NULL)->id > id);
	series_clear(&list);
	/* 0.6 MiB in all */
	assert_true(sizeof(struct series) * SERIES_MOST < 650 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_the_last_hour),
		cmocka_unit_test(a_point_has_the_mean),
		cmocka_unit_test(rates_are_of_counters),
		cmocka_unit_test(there_are_so_many_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

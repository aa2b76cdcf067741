/* SPDX-License-Identifier: Apache-2.0 */
/* What is in force of several shares and the environment. */
#include "policy/grant.h"

#include <string.h>

#include "tests/unit/cmocka_ready.h"

#define GIB (UINT64_C(1) << 30)

static const struct options bare = {.policy = OPTIONS_POLICY_DEFAULT};

static void a_device_has_its_own_limit_else_that_of_all(void **state)
{
	struct options o = bare;

	assert_int_equal(grant_environment_bytes(&o, 0), SHARE_UNLIMITED);
	assert_int_equal(grant_environment_bytes(&o, -1), SHARE_UNLIMITED);
	o.memory_limit_of_bytes[1] = GIB;
	assert_int_equal(grant_environment_bytes(&o, 0), SHARE_UNLIMITED);
	assert_int_equal(grant_environment_bytes(&o, 1), GIB);
	o.memory_limit_bytes = 2 * GIB;
	assert_int_equal(grant_environment_bytes(&o, 0), 2 * GIB);
	assert_int_equal(grant_environment_bytes(&o, 1), GIB);
	assert_int_equal(grant_environment_bytes(&o, -1), 2 * GIB);
	assert_int_equal(grant_environment_bytes(&o, OPTIONS_DEVICES), 2 * GIB);
}

static void the_environment_lends_where_others_can_be_seen(void **state)
{
	static const struct {
		unsigned policy, percent;
		bool has_time_slices;
		uint16_t cores, cap;
	} rows[] = {
		{OPTIONS_POLICY_DEFAULT, 30, true, 300, 1000},
		{OPTIONS_POLICY_DEFAULT, 30, false, 300, 300},
		{OPTIONS_POLICY_FORCE, 30, true, 300, 300},
		{OPTIONS_POLICY_FORCE, 30, false, 300, 300},
		{OPTIONS_POLICY_DISABLE, 30, true, 0, 0},
		{OPTIONS_POLICY_DISABLE, 30, false, 0, 0},
		{OPTIONS_POLICY_DEFAULT, 0, true, 0, 0},
		{OPTIONS_POLICY_FORCE, 0, false, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o = {.policy = rows[i].policy, .cores_percent = rows[i].percent};
		struct share_compute c = grant_environment_compute(&o, -1, rows[i].has_time_slices);

		assert_int_equal(c.cores_permille, rows[i].cores);
		assert_int_equal(c.cap_permille, rows[i].cap);
		assert_int_equal(c.weight, 0);
		o.cores_of_percent[2] = 70;
		c = grant_environment_compute(&o, 2, false);
		assert_int_equal(
			c.cores_permille, rows[i].policy == OPTIONS_POLICY_DISABLE ? 0 : 700);
		c = grant_environment_compute(&o, 1, rows[i].has_time_slices);
		assert_int_equal(c.cores_permille, rows[i].cores);
	}
}

/* For every two limits, in either order. */
static void the_lesser_of_each_is_in_force(void **state)
{
	static const uint16_t values[] = {0, 1, 250, 500, 1000};
	const size_t n = sizeof(values) / sizeof(values[0]);

	for (size_t k = 0; k < n * n * n * n; k++) {
		struct share_compute a = {values[k % n], values[k / n % n], 0};
		struct share_compute b = {values[k / n / n % n], values[k / n / n / n], 0};
		struct share_compute ab = a, ba = b, again;
		uint16_t cap, cores;

		(void)grant_lower(&ab, &b);
		(void)grant_lower(&ba, &a);
		assert_memory_equal(&ab, &ba, sizeof(ab));
		cap = !a.cap_permille || (b.cap_permille && b.cap_permille < a.cap_permille)
			      ? b.cap_permille
			      : a.cap_permille;
		cores = !a.cores_permille ||
					(b.cores_permille && b.cores_permille < a.cores_permille)
				? b.cores_permille
				: a.cores_permille;
		assert_int_equal(ab.cap_permille, cap);
		assert_int_equal(ab.cores_permille, cap && cores > cap ? cap : cores);
		again = ab;
		assert_false(grant_lower(&again, &b));
		assert_memory_equal(&ab, &again, sizeof(ab));
	}
}

/* What the machine's share says, what a tenant asks for, and what is in force. */
static void what_a_tenant_asks_for_raises_nothing(void **state)
{
	static const struct {
		struct share_compute system, asked, granted;
	} rows[] = {
		/* sure of nothing, and so for a cap alone */
		{{0, 0, 0}, {950, 1000, 0}, {0, 950, 100}},
		{{0, 0, 0}, {950, 950, 0}, {0, 950, 100}},
		{{0, 300, 0}, {950, 1000, 0}, {0, 300, 100}},
		{{0, 0, 0}, {0, 400, 0}, {0, 400, 100}},
		{{0, 0, 0}, {0, 0, 0}, {0, 1000, 100}},
		/* sure of the lesser */
		{{600, 1000, 0}, {950, 1000, 0}, {600, 1000, 100}},
		{{600, 1000, 0}, {300, 1000, 0}, {300, 1000, 100}},
		{{600, 1000, 0}, {300, 300, 0}, {300, 300, 100}},
		{{300, 500, 0}, {0, 200, 0}, {200, 200, 100}},
		/* the weight of the machine's, or less */
		{{0, 0, 0}, {0, 0, 10000}, {0, 1000, 100}},
		{{0, 0, 0}, {0, 0, 101}, {0, 1000, 100}},
		{{0, 0, 0}, {0, 0, 50}, {0, 1000, 50}},
		{{0, 0, 200}, {0, 0, 10000}, {0, 1000, 200}},
		{{0, 0, 200}, {0, 0, 150}, {0, 1000, 150}},
		{{0, 0, 20}, {0, 0, 100}, {0, 1000, 20}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct share_compute c = {0, SHARE_WHOLE_PERMILLE, SHARE_DEFAULT_WEIGHT};
		struct share_compute asked = rows[i].asked;

		(void)grant_lower(&c, &rows[i].system);
		grant_bind(&asked, &rows[i].system);
		(void)grant_lower(&c, &asked);
		assert_memory_equal(&c, &rows[i].granted, sizeof(c));
		/* Without a share of the machine's it is what is granted. */
		asked = rows[i].asked;
		grant_bind(&asked, NULL);
		assert_memory_equal(&asked, &rows[i].asked, sizeof(asked));
	}
}

static void what_is_forced_borrows_nothing_when_cores_are_lowered(void **state)
{
	const struct options forced = {.policy = OPTIONS_POLICY_FORCE},
			     lent = {.policy = OPTIONS_POLICY_DEFAULT};
	const struct share_compute limit = {600, 600, 0}, none = {0, 0, 0};
	struct share_compute c = {300, 600, 100};

	grant_force(&c, &lent, &limit);
	grant_force(&c, &forced, &none);
	assert_int_equal(c.cap_permille, 600);
	grant_force(&c, &forced, &limit);
	assert_int_equal(c.cores_permille, 300);
	assert_int_equal(c.cap_permille, 300);
}

static void a_change_is_told_and_a_weight_is_none(void **state)
{
	struct share_compute c = {500, 1000, 100};

	assert_false(grant_lower(&c, &(struct share_compute){0, 0, 0}));
	assert_int_equal(c.weight, 100);
	assert_false(grant_lower(&c, &(struct share_compute){600, 1000, 200}));
	assert_int_equal(c.weight, 200);
	assert_true(grant_lower(&c, &(struct share_compute){0, 400, 0}));
	assert_int_equal(c.cores_permille, 400);
	assert_int_equal(c.cap_permille, 400);
	assert_int_equal(c.weight, 200);
}

static void the_driver_has_a_pipe_of_its_own(void **state)
{
	assert_string_equal(grant_mps_pipe(NULL), "/tmp/nvidia-mps");
	assert_string_equal(grant_mps_pipe(""), "/tmp/nvidia-mps");
	assert_string_equal(grant_mps_pipe("/run/mps"), "/run/mps");
}

static void the_first_share_that_has_a_folder_names_it(void **state)
{
	static const struct share none, mps = {.mps = "/run/mps"}, with_a = {.turns = "/run/a"},
					with_b = {.turns = "/run/b"},
					mps_a = {.mps = "/run/mps", .turns = "/run/a"};
	static const struct {
		const struct share *shares[GRANT_SHARES];
		const char *option, *found;
	} rows[] = {
		{{NULL, NULL}, NULL, NULL},
		{{NULL, NULL}, "/run/o", "/run/o"},
		{{&none, &none}, "/run/o", "/run/o"},
		{{&with_a, &with_b}, "/run/o", "/run/a"},
		{{&none, &with_b}, "/run/o", "/run/b"},
		{{NULL, &with_b}, "/run/o", "/run/b"},
		{{&mps, NULL}, "/run/o", NULL},
		{{&mps_a, NULL}, "/run/o", NULL},
		{{&mps_a, &with_b}, "/run/o", "/run/b"},
		{{&with_a, &mps}, "/run/o", "/run/a"},
		{{&none, &mps}, "/run/o", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o = {.turns_path = rows[i].option};
		const char *found = grant_turns_path(rows[i].shares, "/run/mps", &o);

		assert_int_equal(!found, !rows[i].found);
		if (found)
			assert_string_equal(found, rows[i].found);
	}
	/* Whoever talks to another daemon takes turns. */
	assert_string_equal(
		grant_turns_path((const struct share *[]){&mps_a, NULL}, "/other", &bare),
		"/run/a");
	assert_false(grant_is_client(&none, "/run/mps"));
}

static void the_burst_is_the_shares_and_the_environment_only_lowers_it(void **state)
{
	static const struct share none, small = {.burst_ms = 5}, large = {.burst_ms = 500};
	static const struct {
		const struct share *shares[GRANT_SHARES];
		unsigned option_ms, burst_ms;
	} rows[] = {
		{{NULL, NULL}, 1000, 10},
		{{NULL, NULL}, 3, 3},
		{{&none, NULL}, 1000, 10},
		{{NULL, &large}, 1000, 500},
		{{NULL, &large}, 40, 40},
		{{&large, &small}, 1000, 5},
		/* a share of the tenant's own does not raise what the system's leaves at the default */
		{{&none, &large}, 1000, 10},
		{{&small, &none}, 1000, 5},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o = {.burst_ms = rows[i].option_ms};

		assert_int_equal(grant_burst_ms(rows[i].shares, &o), rows[i].burst_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_has_its_own_limit_else_that_of_all),
		cmocka_unit_test(the_environment_lends_where_others_can_be_seen),
		cmocka_unit_test(the_lesser_of_each_is_in_force),
		cmocka_unit_test(what_a_tenant_asks_for_raises_nothing),
		cmocka_unit_test(what_is_forced_borrows_nothing_when_cores_are_lowered),
		cmocka_unit_test(a_change_is_told_and_a_weight_is_none),
		cmocka_unit_test(the_driver_has_a_pipe_of_its_own),
		cmocka_unit_test(the_first_share_that_has_a_folder_names_it),
		cmocka_unit_test(the_burst_is_the_shares_and_the_environment_only_lowers_it),
	};

	return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}

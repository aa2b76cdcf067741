/* SPDX-License-Identifier: Apache-2.0 */
/* The books against a plain list of what was told, amounts as Kubernetes writes them, and texts that nobody would write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cmocka_ready.h"
#include "kube/quantity.h"
#include "scheduler/books.h"

#define NODES 3
#define PODS  20

static void amounts_are_whole_or_none(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} right[] = {{"0", 0}, {"10", 10}, {"5k", 5000}, {"1e3", 1000}, {"1E3", 1000},
		{"1E", 1000000000000000000}, {"1500m", -1}, {"2000m", 2}, {"1.5k", 1500},
		{"0.5Ki", 512}, {"1Gi", 1 << 30}, {".5", -1}, {"1.50Ki", 1536}, {"+7", 7},
		{"-3", -3}, {"5.", 5}, {"9223372036854775808", -1}, {"9E", 9000000000000000000},
		{"10E", -1}, {"8Ei", -1}, {"", -1}, {"k", -1}, {"1kk", -1}, {"1 ", -1}, {"1e", -1},
		{"0x10", -1}, {"1e-1", -1}, {"10e-1", 1}, {"1.0000000000000000000000", 1}};

	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		int64_t value = -1;

		if (!quantity_parse(right[i].text, &value))
			value = -1;
		if (value != right[i].value)
			fail_msg("'%s' is %lld", right[i].text, (long long)value);
	}
}

static void registers_that_are_no_such_are_refused(void **state)
{
	static const char place[] = "[{\"id\":\"a\",\"migProfiles\":[{\"name\":\"1g\","
				    "\"placements\":[{\"start\":30,\"size\":9}]}]}]";
	static const char *const wrong[] = {"[{\"count\":1}]", "[{\"id\":\"a\",\"count\":\"1\"}]",
		"[{\"id\":\"a\",\"devmem\":-1}]", "[{\"id\":\"a\",\"devmem\":2147483648}]", "[1]",
		"GPU-a,1:", "{\"a\":\"b,1,1,1,t,0,true:c,1,1,1,t,0,true:d,1,1,1,t,0,true\"}",
		"GPU-a,x,1,1,t,0,true:", place, "[{\"id\":\"a\",\"migProfiles\":[{}]}]"};
	struct books *books;

	assert_int_equal(books_new(&books), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct registry_texts texts = {.devices = wrong[i]};
		struct err err = ERR_NULL;

		if (books_set_node(books, "n", &texts, &err) != -22)
			fail_msg("%s is taken", wrong[i]);
		assert_true(strlen(err.text) > 10);
		assert_null(books_node(books, "n"));
	}
	books_free(books);
}

struct told {
	bool is_there;
	unsigned node, device;
	int64_t memory_mib;
};

static int64_t expected(const struct told *told, unsigned node, unsigned device)
{
	int64_t sum = 0;

	for (size_t i = 0; i < PODS; i++)
		if (told[i].is_there && told[i].node == node && told[i].device == device)
			sum += told[i].memory_mib;
	return sum;
}

static void tell_pod(struct books *books, size_t at, const struct told *told)
{
	char uid[8], node[8], device[8];
	struct books_charge charge = {device, {1, told->memory_mib, 1}};
	struct books_pod pod = {
		.uid = uid, .namespace = "ns", .node = node, .charges = &charge, .charge_count = 1};

	snprintf(uid, sizeof(uid), "p%zu", at);
	snprintf(node, sizeof(node), "n%u", told->node % 10);
	snprintf(device, sizeof(device), "g%u", told->device % 10);
	if (told->is_there)
		assert_int_equal(books_set_pod(books, &pod), 0);
	else
		books_drop_pod(books, uid);
}

static void the_strictest_quota_holds(void **state)
{
	struct books *books;

	assert_int_equal(books_new(&books), 0);
	assert_int_equal(books_set_quota(books, "ns", "a", &(struct fit_room){10, INT64_MAX}), 0);
	assert_int_equal(books_set_quota(books, "ns", "b", &(struct fit_room){20, 5}), 0);
	assert_int_equal(books_room(books, "ns").memory_mib, 10);
	assert_int_equal(books_room(books, "ns").cores, 5);
	books_drop_quota(books, "ns", "a");
	books_drop_quota(books, "ns", "none");
	books_drop_quota(books, "none", "a");
	assert_int_equal(books_room(books, "ns").memory_mib, 20);
	assert_true(books_room(books, "other").memory_mib == INT64_MAX);
	books_free(books);
}

static void the_books_hold_what_was_told(void **state)
{
	static const struct registry_texts texts = {
		.devices = "g0,9,1000,100,A,0,true:g1,9,1000,100,A,0,true:"};
	struct told told[PODS] = {0};
	struct books *books;
	struct err err;

	srand(1);
	assert_int_equal(books_new(&books), 0);
	assert_int_equal(
		books_set_quota(books, "ns", "q", &(struct fit_room){100000, INT64_MAX}), 0);
	for (unsigned round = 0; round < 20000; round++) {
		size_t at = (size_t)rand() % PODS;
		unsigned node = (unsigned)rand() % NODES;
		char name[16];
		int64_t all = 0;

		snprintf(name, sizeof(name), "n%u", node);
		if (rand() % 10 == 0)
			books_drop_node(books, name);
		else
			assert_int_equal(books_set_node(books, name, &texts, &err), 0);
		told[at] = (struct told){
			rand() % 3, (unsigned)rand() % NODES, (unsigned)rand() % 2, rand() % 100};
		tell_pod(books, at, &told[at]);
		for (unsigned n = 0; n < NODES; n++) {
			const struct fit_node *its;

			snprintf(name, sizeof(name), "n%u", n);
			its = books_node(books, name);
			for (unsigned d = 0; d < 2; d++) {
				all += expected(told, n, d);
				if (its)
					assert_int_equal(its->devices[d].used.memory_mib,
						expected(told, n, d));
			}
		}
		assert_int_equal(books_room(books, "ns").memory_mib, 100000 - all);
		assert_true(books_room(books, "ns").cores == INT64_MAX);
	}
	books_free(books);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_are_whole_or_none),
		cmocka_unit_test(registers_that_are_no_such_are_refused),
		cmocka_unit_test(the_strictest_quota_holds),
		cmocka_unit_test(the_books_hold_what_was_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

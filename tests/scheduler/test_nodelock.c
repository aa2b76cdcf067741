/* SPDX-License-Identifier: Apache-2.0 */
/* The lock on a node: its text, and whether it still holds. */
#include <string.h>

#include "scheduler/nodelock.h"
#include "tests/unit/cmocka_ready.h"

#define NOW	1767323045 /* 2026-01-02T03:04:05Z */
#define TIMEOUT 300

static void a_lock_is_read_and_written(void **state)
{
	char text[NODELOCK_BYTES];
	struct nodelock lock;

	nodelock_format(&(struct timespec){NOW, 6}, "space", "pod", text);
	assert_string_equal(text, "2026-01-02T03:04:05.000000006Z,space,pod");
	assert_true(nodelock_parse(text, &lock));
	assert_int_equal(lock.set_s, NOW);
	assert_true(nodelock_is_of(&lock, "space", "pod"));
	assert_false(nodelock_is_of(&lock, "space", "po"));
	assert_true(nodelock_parse("2026-01-02T11:04:05+08:00,space,pod", &lock));
	assert_int_equal(lock.set_s, NOW);
	assert_true(nodelock_parse("2026-01-02T03:04:05.123456Z", &lock));
	assert_int_equal(lock.set_s, NOW);
	assert_false(nodelock_parse("", &lock));
	assert_false(nodelock_parse(NULL, &lock));
}

static void what_is_no_lock_has_no_owner(void **state)
{
	static const char *const texts[] = {"x", ",", ",,", "2026-01-02T03:04:05Z,space",
		"2026-01-02T03:04:05Z,space,pod,more", "2026-01-02T03:04:05Zx,space",
		"2026-13-02T03:04:05Z"};
	char large[2 * NODELOCK_BYTES];
	struct nodelock lock;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_true(nodelock_parse(texts[i], &lock));
		assert_string_equal(lock.name, "");
	}
	memset(large, ',', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	assert_true(nodelock_parse(large, &lock));
	assert_string_equal(lock.name, "");
	assert_true(lock.set_s == INT64_MAX);
}

static enum nodelock_verdict judge(const char *text, const char *pod, int64_t seen_s)
{
	json_t *object = pod ? json_loads(pod, 0, NULL) : NULL;
	enum nodelock_verdict verdict;
	struct nodelock lock;

	assert_true(!pod || object);
	assert_true(nodelock_parse(text, &lock));
	verdict = nodelock_judge(&lock, "n1", object, NOW, seen_s, TIMEOUT);
	json_decref(object);
	return verdict;
}

#define WAITS                                                                      \
	"{\"metadata\":{\"annotations\":{\"hami.io/bind-phase\":\"allocating\"}}," \
	"\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Pending\"}}"
#define ELSEWHERE                                                                  \
	"{\"metadata\":{\"annotations\":{\"hami.io/bind-phase\":\"allocating\"}}," \
	"\"spec\":{\"nodeName\":\"n2\"},\"status\":{\"phase\":\"Pending\"}}"
#define SERVED                                                                  \
	"{\"metadata\":{\"annotations\":{\"hami.io/bind-phase\":\"success\"}}," \
	"\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Pending\"}}"
#define FAILED "{\"status\":{\"phase\":\"Failed\"},\"spec\":{\"nodeName\":\"n1\"}}"

static void a_lock_holds_while_its_pod_needs_it(void **state)
{
	static const char fresh[] = "2026-01-02T03:04:00Z,space,pod";
	static const char old[] = "2026-01-02T02:00:00Z,space,pod";
	static const char later[] = "2026-01-02T09:00:00Z,space,pod";

	assert_int_equal(judge(fresh, WAITS, 0), NODELOCK_HELD);
	assert_int_equal(judge(old, WAITS, 10000), NODELOCK_HELD);
	assert_int_equal(judge(fresh, SERVED, 0), NODELOCK_LEFT);
	assert_int_equal(judge(fresh, FAILED, 0), NODELOCK_LEFT);
	assert_int_equal(judge(fresh, ELSEWHERE, 0), NODELOCK_LEFT);
	assert_int_equal(judge(fresh, NULL, 0), NODELOCK_LEFT);
	/* one that is not bound: whoever has set the lock may be about to bind it */
	assert_int_equal(judge(fresh, "{}", 0), NODELOCK_HELD);
	assert_int_equal(judge(old, "{}", 0), NODELOCK_LEFT);
	assert_int_equal(judge(later, "{}", NODELOCK_BINDING_S), NODELOCK_HELD);
	assert_int_equal(judge(later, "{}", NODELOCK_BINDING_S + 1), NODELOCK_LEFT);
}

static void a_lock_of_nobody_holds_for_its_time(void **state)
{
	assert_int_equal(judge("2026-01-02T03:00:00Z", NULL, 0), NODELOCK_HELD);
	assert_int_equal(judge("2026-01-02T02:00:00Z", NULL, 0), NODELOCK_LEFT);
	assert_int_equal(judge("2026-01-02T02:00:00Z,space", NULL, 0), NODELOCK_LEFT);
	assert_int_equal(judge("x", NULL, TIMEOUT), NODELOCK_HELD);
	assert_int_equal(judge("x", NULL, TIMEOUT + 1), NODELOCK_LEFT);
	assert_int_equal(judge("2027-01-02T03:04:05Z", NULL, TIMEOUT + 1), NODELOCK_LEFT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_is_read_and_written),
		cmocka_unit_test(what_is_no_lock_has_no_owner),
		cmocka_unit_test(a_lock_holds_while_its_pod_needs_it),
		cmocka_unit_test(a_lock_of_nobody_holds_for_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

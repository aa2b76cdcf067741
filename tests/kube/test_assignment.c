/* SPDX-License-Identifier: Apache-2.0 */
/* The annotations that say which devices a pod was assigned: every writer's form, and forms that are none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/assignment.h"
#include "tests/unit/cmocka_ready.h"

/* What is read means the same when it is written and read again; what was written is `written`. */
static void round_trip(const char *text, const char *written)
{
	struct assignment a = ASSIGNMENT_NULL, again = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;
	char *made = NULL;

	if (assignment_decode(text, &a, &err))
		fail_msg("'%s': %s", text, err.text);
	assert_int_equal(assignment_encode(&a, &made), 0);
	assert_string_equal(made, written);
	assert_int_equal(assignment_decode(made, &again, &err), 0);
	assert_int_equal(again.count, a.count);
	assignment_deinit(&again);
	assignment_deinit(&a);
	assignment_deinit(&a);
	free(made);
}

static void what_todays_scheduler_writes_stays_as_it_is(void **state)
{
	static const char *const texts[] = {"", ";", ";;", "GPU-a,NVIDIA,3000,30:;",
		"GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;", ";GPU-a,NVIDIA,3000,30:;",
		";GPU-a,NVIDIA,2500,25:;GPU-b,NVIDIA,2500,25:;", "GPU-a,NVIDIA,81559,100:;",
		"GPU-a,NVIDIA,2147483647,0:;;;"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		round_trip(texts[i], texts[i]);
}

static void what_others_write_is_read(void **state)
{
	round_trip("GPU-a,NVIDIA,3000,30", "GPU-a,NVIDIA,3000,30:;");
	round_trip("GPU-a,NVIDIA,3000,30;", "GPU-a,NVIDIA,3000,30:;");
	round_trip("GPU-a,NVIDIA,3000,30,7,x:;", "GPU-a,NVIDIA,3000,30:;");
	round_trip(",,0,0:;GPU-a,NVIDIA,3000,30:;", ";GPU-a,NVIDIA,3000,30:;");
	round_trip("GPU-a,NVIDIA,+3000,030:;", "GPU-a,NVIDIA,3000,30:;");
	round_trip("GPU-a[1g.10gb-0],NVIDIA,9728,14:;", "GPU-a[1g.10gb-0],NVIDIA,9728,14:;");
	round_trip("MIG-GPU-a/1/0,NVIDIA,9728,14:;", "MIG-GPU-a/1/0,NVIDIA,9728,14:;");
	round_trip("nothing:GPU-a,NVIDIA,1,1:;;", "GPU-a,NVIDIA,1,1:;;");
}

static void refused(const char *text, const char *why)
{
	struct assignment a = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;

	assert_int_equal(assignment_decode(text, &a, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s': %s", text, err.text);
	assert_null(a.slots);
}

static void what_is_no_assignment_is_refused_with_a_sentence(void **state)
{
	static char many[3 * ASSIGNMENT_CONTAINERS_MAX];
	char long_uuid[300];

	refused("GPU-a,NVIDIA,3000:;", "container slot 0, device 0: the text 'GPU-a,NVIDIA,3000'");
	refused(";GPU-b,NVIDIA,1,1:GPU-a,NVIDIA:;", "container slot 1, device 1");
	refused("GPU-a,NVIDIA,3g,30:;", "the memory '3g' is no number");
	refused("GPU-a,NVIDIA,,30:;", "the memory '' is no number");
	refused("GPU-a,NVIDIA, 3,30:;", "no number");
	refused("GPU-a,NVIDIA,3,-:;", "the cores '-' is no number");
	refused("GPU-a,NVIDIA,4294967296,30:;", "is too large");
	refused("GPU-a,NVIDIA,2147483648,30:;", "is too large");
	refused("GPU-a,NVIDIA,99999999999999999999999999999,30:;", "is too large");
	refused("GPU-a,NVIDIA,-5,30:;", "the memory '-5' is below 0");
	refused("GPU-a,NVIDIA,5,-1:;", "the cores '-1' is below 0");
	refused("GPU a,NVIDIA,5,1:;", "the UUID");
	refused("GPU-\x1b[2J,NVIDIA,5,1:;", "'GPU-?[2J'");
	refused("GPU-a],NVIDIA,5,1:;", "bracket");
	refused("GPU-a[x]y],NVIDIA,5,1:;", "the UUID");
	refused(",NVIDIA,5,1:;", "names no device");
	memset(long_uuid, 'a', sizeof(long_uuid));
	strcpy(long_uuid + 250, ",NVIDIA,5,1:;");
	refused(long_uuid, "is too long");
	memset(many, ';', sizeof(many) - 1);
	refused(many, "more than");
	memset(many, ':', sizeof(many) - 1);
	refused(many, "more than");
}

static void slots_are_served_in_order(void **state)
{
	struct assignment a = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;
	size_t slot = 99;
	char *text;

	assert_int_equal(assignment_decode(";GPU-a,NVIDIA,1,1:;;GPU-b,NVIDIA,2,2:;", &a, &err), 0);
	assert_true(assignment_next(&a, &slot));
	assert_int_equal(slot, 1);
	assignment_consume(&a, slot);
	assert_true(assignment_next(&a, &slot));
	assert_int_equal(slot, 3);
	assert_string_equal(a.slots[slot].devices[0].uuid, "GPU-b");
	assert_int_equal(assignment_encode(&a, &text), 0);
	assert_string_equal(text, ";;;GPU-b,NVIDIA,2,2:;");
	free(text);
	assignment_consume(&a, slot);
	assert_false(assignment_next(&a, &slot));
	assignment_deinit(&a);
}

static const struct assignment_need none = {0, false}, none_of_init = {0, true}, one = {1, false},
				    two = {2, false}, one_of_init = {1, true};

/* The containers of the slots with devices, as digits; "-" where it is refused. */
static void match(
	const char *text, const struct assignment_need *needs, size_t count, const char *expected)
{
	struct assignment a = ASSIGNMENT_NULL;
	struct err err = ERR_NULL;
	size_t containers[8], used = 0;
	char seen[16] = "-";

	assert_int_equal(assignment_decode(text, &a, &err), 0);
	if (!assignment_match(&a, needs, count, containers, &err))
		for (size_t i = 0; i < a.count; i++)
			if (a.slots[i].count)
				seen[used++] = (char)('0' + containers[i]);
	if (used)
		seen[used] = '\0';
	assert_string_equal(seen, expected);
	assignment_deinit(&a);
}

#define MATCH(text, expected, ...)                                   \
	match((text), (const struct assignment_need[]){__VA_ARGS__}, \
		sizeof((const struct assignment_need[]){__VA_ARGS__}) / sizeof(one), (expected))
#define A "GPU-a,NVIDIA,1,1:"
#define B "GPU-b,NVIDIA,1,1:"

static void each_slot_finds_its_container(void **state)
{
	MATCH(A ";", "0", one);
	MATCH(";" A ";", "1", none, one);
	MATCH(A ";;" B ";", "02", one, none, one);
	MATCH(A ";" B ";", "01", one_of_init, one);
	MATCH(";" A ";" B ";", "12", none_of_init, one, one);
	MATCH(A B ";", "0", two);
	/* before 2.9: without init containers */
	MATCH(A ";" B ";", "12", none_of_init, one, one);
	MATCH(";" A ";", "2", none_of_init, none, one);
	/* what they ask for has no slot */
	MATCH(A ";", "1", one_of_init, one);
	MATCH(A ";" B ";", "12", one_of_init, one, one);
	MATCH(";" A ";", "2", one_of_init, none, one);
	/* 2.10: without those that have no device */
	MATCH(A ";", "1", none, one);
	MATCH(A ";" B ";", "02", one, none, one);
	MATCH(A ";" B ";", "03", one_of_init, none_of_init, none, one);
	MATCH(A ";;", "1", none, one);
}

static void slots_that_are_no_containers_are_refused(void **state)
{
	MATCH(";;;" A ";", "-", one);
	MATCH(A ";", "-", none);
	MATCH(A ";", "-", two);
	MATCH(A B ";", "-", one);
	MATCH(A ";" B ";", "-", one);
	MATCH(A ";;" B ";", "-", one, none, none, one);
	MATCH(A ";", "-", {-1, false});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_todays_scheduler_writes_stays_as_it_is),
		cmocka_unit_test(what_others_write_is_read),
		cmocka_unit_test(what_is_no_assignment_is_refused_with_a_sentence),
		cmocka_unit_test(slots_are_served_in_order),
		cmocka_unit_test(each_slot_finds_its_container),
		cmocka_unit_test(slots_that_are_no_containers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

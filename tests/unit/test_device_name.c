/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices: two that mean one device, and two that do not. */
#include "policy/device_name.h"

#include <string.h>

#include "tests/unit/cmocka_ready.h"

static void the_kind_before_the_name_says_nothing(void **state)
{
	assert_true(device_name_is_same("GPU-a1", "GPU-a1"));
	assert_true(device_name_is_same("MIG-a1", "GPU-a1"));
	assert_true(device_name_is_same("GPU-a1", "MIG-a1"));
	assert_true(device_name_is_same("a1", "MIG-a1"));
	assert_string_equal(device_name_core("MIG-a1"), "a1");
	assert_string_equal(device_name_core("a1"), "a1");
}

static void the_rest_says_all(void **state)
{
	assert_false(device_name_is_same("GPU-a1", "GPU-a2"));
	assert_false(device_name_is_same("GPU-a1", "GPU-a"));
	assert_false(device_name_is_same("GPU-a1", "GPU-a11"));
	assert_false(device_name_is_same("GPU-a1", "gpu-a1"));
	assert_false(device_name_is_same("GPU-", "GPU-a"));
	assert_false(device_name_is_same("", "GPU-a"));
	assert_false(device_name_is_same("GPU", "MIG"));
}

static void a_name_without_an_end_is_read_no_further_than_a_region_holds(void **state)
{
	char whole[200], endless[96];

	memset(whole, 'x', sizeof(whole));
	whole[sizeof(whole) - 1] = '\0';
	memset(endless, 'x', sizeof(endless));
	assert_true(device_name_is_same(endless, whole));
	memcpy(endless, "GPU-", 4);
	assert_true(device_name_is_same(endless, whole));
	whole[90] = 'y';
	assert_false(device_name_is_same(endless, whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kind_before_the_name_says_nothing),
		cmocka_unit_test(the_rest_says_all),
		cmocka_unit_test(a_name_without_an_end_is_read_no_further_than_a_region_holds),
	};

	return cmocka_run_group_tests_name("device_name", tests, NULL, NULL);
}

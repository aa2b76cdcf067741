/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the device's own runtime: each name that a compiler gave them, and none that only looks like one. */
#include "policy/device_runtime.h"

#include <string.h>

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

static bool is_heap(const char *name)
{
	return device_runtime_is_heap(name, strlen(name));
}

static void what_allocates_or_launches_is_known_by_each_name(void **state)
{
	static const char *const names[] = {"malloc", "cudaLaunchDevice", "cudaLaunchDeviceV2_ptsz",
		"cudaCDP2LaunchDevice", "__cudaCDP1LaunchDeviceV2",
		"__cudaCDP2GetParameterBufferV2", "__cuda_syscall_cnpv2LaunchDevice"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(is_heap(names[i]));
}

static void other_names_are_none(void **state)
{
	static const char *const names[] = {"", "mallocate", "mallo", "free", "vprintf", "cudaCD",
		"_Z8__cudaCDP2v", "__cuda_syscall_mathv2", "__cuda_syscall_"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		assert_false(is_heap(names[i]));
}

static void what_prints_is_known(void **state)
{
	(void)state;
	assert_true(device_runtime_is_printf("vprintf", 7));
	assert_false(device_runtime_is_printf("vprintf", 6));
	assert_false(device_runtime_is_printf("vprintfs", 8));
}

static void nothing_behind_the_name_is_read(void **state)
{
	(void)state;
	assert_true(device_runtime_is_heap("mallocate", 6));
	assert_false(device_runtime_is_heap("__cudaCDP2", 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_allocates_or_launches_is_known_by_each_name),
		cmocka_unit_test(other_names_are_none),
		cmocka_unit_test(what_prints_is_known),
		cmocka_unit_test(nothing_behind_the_name_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

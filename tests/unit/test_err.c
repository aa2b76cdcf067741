/* SPDX-License-Identifier: Apache-2.0 */
/* The error text: set, wrapped, and never longer than its buffer. */
#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_ready.h"

static void setting_an_error_returns_its_negative_number(void **state)
{
	struct err err = ERR_NULL;

	assert_int_equal(err_set(&err, ENOENT, "open '%s' (%d)", "/a", 3), -ENOENT);
	assert_string_equal(err.text, "open '/a' (3)");
}

static void wrapping_puts_the_outer_cause_first(void **state)
{
	struct err err = ERR_NULL;

	assert_int_equal(err_set(&err, EIO, "read failed"), -EIO);
	err_wrap(&err, "slice %s", "a");
	err_wrap(&err, "create");
	assert_string_equal(err.text, "create: slice a: read failed");
}

static void a_text_that_is_too_long_is_cut(void **state)
{
	struct err err = ERR_NULL;
	char longer[2 * sizeof(err.text)];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(err_set(&err, EIO, "%s", longer), -EIO);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	err_wrap(&err, "outer");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "outer: xxx", 10);
	err_wrap(&err, "%s", longer);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(err.text[sizeof(err.text) - 2], 'x');
}

static void a_wrapped_empty_error_is_still_a_sentence(void **state)
{
	struct err err = ERR_NULL;

	err_wrap(&err, "start");
	assert_string_equal(err.text, "start: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setting_an_error_returns_its_negative_number),
		cmocka_unit_test(wrapping_puts_the_outer_cause_first),
		cmocka_unit_test(a_text_that_is_too_long_is_cut),
		cmocka_unit_test(a_wrapped_empty_error_is_still_a_sentence),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}

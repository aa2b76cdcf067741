/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and numbers: what is read, and what is refused rather than guessed at. */
#include "base/parse.h"

#include <string.h>

#include "tests/unit/cmocka_ready.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

static uint64_t size_of(const char *text)
{
	uint64_t bytes = UNTOUCHED;

	assert_int_equal(parse_size(text, &bytes), 0);
	return bytes;
}

static int refusal_of(const char *text)
{
	uint64_t bytes = UNTOUCHED;
	int r = parse_size(text, &bytes);

	assert_int_not_equal(r, 0);
	assert_int_equal(bytes, UNTOUCHED);
	return r;
}

static void a_size_is_digits_and_a_unit(void **state)
{
	assert_int_equal(size_of("0"), 0);
	assert_int_equal(size_of("000"), 0);
	assert_int_equal(size_of("1"), 1);
	assert_int_equal(size_of("1k"), 1024);
	assert_int_equal(size_of("3M"), 3145728);
	assert_int_equal(size_of("8g"), 8589934592);
	assert_int_equal(size_of("8G"), 8589934592);
	assert_int_equal(size_of("2t"), 2199023255552);
}

static void a_unit_is_written_in_several_ways_and_means_one(void **state)
{
	static const char *const ways[] = {"2g", "2G", "2gb", "2GB", "2Gi", "2gi", "2GiB", "2gib",
		"2.0g", "2.000000000000000000000000GiB"};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		assert_int_equal(size_of(ways[i]), UINT64_C(2) << 30);
	assert_int_equal(size_of("3kB"), 3072);
}

static void with_a_unit_a_size_may_have_a_point(void **state)
{
	assert_int_equal(size_of("2.5g"), UINT64_C(2560) << 20);
	assert_int_equal(size_of("0.5GiB"), UINT64_C(512) << 20);
	assert_int_equal(size_of("0.001k"), 1);
	assert_int_equal(size_of("1.9999999999999999999k"), 2047);
	assert_true(size_of("16777215.999999999999999t") > size_of("16777215t"));
	assert_int_equal(refusal_of("16777216.0t"), PARSE_E_TOO_LARGE);
}

static void leading_zeros_do_not_make_a_size_octal(void **state)
{
	assert_int_equal(size_of("010g"), UINT64_C(10) << 30);
	assert_int_equal(size_of("0000000000000000000000000008"), 8);
}

static void nonsense_is_no_size(void **state)
{
	static const char *const nonsense[] = {"", " ", "10GBi", "10G i", "10GiBs", "1.5", "1.g",
		".5g", "1,5g", "1.5.g", "1..5g", "1.5gg", "1.-5g", "1. 5g", "1.5g ", "1B", "1i",
		"1.5B", "0.0g", "0.0000000000001k", "1e3g", "-1", "+1", " 1", "1 ", "1\n", "\t1",
		"1 g", "g", "gg", "1kk", "1g0", "0x10", "1e3", "1b", "1p", "unlimited", "none",
		"-0", "1g ", "1g\n", "\xd9\xa1", "1\xc2\xa0g", "1'000"};

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++)
		assert_int_equal(refusal_of(nonsense[i]), PARSE_E_NOT_A_SIZE);
}

static void zero_with_a_letter_is_refused(void **state)
{
	static const char *const zeros[] = {"0k", "0m", "0g", "0t", "00M", "000G"};

	for (size_t i = 0; i < ARRAY_SIZE(zeros); i++)
		assert_int_equal(refusal_of(zeros[i]), PARSE_E_NOT_A_SIZE);
}

static void of_all_bytes_only_eight_are_suffixes(void **state)
{
	unsigned accepted = 0;

	for (int c = 1; c < 256; c++) {
		const char text[] = {'7', (char)c, '\0'};
		uint64_t bytes;

		if (c >= '0' && c <= '9')
			continue;
		if (parse_size(text, &bytes) == 0) {
			assert_non_null(strchr("kKmMgGtT", c));
			accepted++;
		}
	}
	assert_int_equal(accepted, 8);
}

static void the_largest_sizes_fit_and_the_next_ones_do_not(void **state)
{
	static const char *const too_large[] = {"18446744073709551616", "18446744073709551620",
		"99999999999999999999", "18014398509481984k", "17592186044416m", "17179869184g",
		"16777216t", "18446744073709551615k", "184467440737095516150",
		"1000000000000000000000000000000000000000000000000000000000000000000g"};

	assert_true(size_of("18446744073709551615") == UINT64_MAX);
	assert_true(size_of("18014398509481983k") == UINT64_C(18014398509481983) << 10);
	assert_true(size_of("17592186044415m") == UINT64_C(17592186044415) << 20);
	assert_true(size_of("17179869183g") == UINT64_C(17179869183) << 30);
	assert_true(size_of("16777215t") == UINT64_C(16777215) << 40);
	for (size_t i = 0; i < ARRAY_SIZE(too_large); i++)
		assert_int_equal(refusal_of(too_large[i]), PARSE_E_TOO_LARGE);
}

static void a_number_has_no_suffix(void **state)
{
	static const char *const nonsense[] = {
		"", " ", "1k", "-1", "+1", " 1", "1 ", "1.0", "0x1", "one"};
	uint64_t value = UNTOUCHED;

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++)
		assert_int_equal(parse_u64(nonsense[i], 100, &value), PARSE_E_NOT_A_NUMBER);
	assert_int_equal(value, UNTOUCHED);
	assert_int_equal(parse_u64("007", 100, &value), 0);
	assert_int_equal(value, 7);
}

static void a_number_above_the_maximum_is_refused(void **state)
{
	uint64_t value = UNTOUCHED;

	assert_int_equal(parse_u64("5", 4, &value), PARSE_E_TOO_LARGE);
	assert_int_equal(parse_u64("18446744073709551616", UINT64_MAX, &value), PARSE_E_TOO_LARGE);
	assert_int_equal(value, UNTOUCHED);
	assert_int_equal(parse_u64("4", 4, &value), 0);
	assert_int_equal(value, 4);
	assert_int_equal(parse_u64("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
}

static void a_switch_is_on_by_the_words_of_go(void **state)
{
	static const char *const on[] = {"1", "t", "T", "true", "True", "TRUE"};
	static const char *const others[] = {"0", "f", "false", "", "yes", "tRUE", "true ", "11"};

	for (unsigned i = 0; i < sizeof(on) / sizeof(*on); i++)
		assert_true(parse_is_on(on[i]));
	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(parse_is_on(others[i]));
	assert_false(parse_is_on(NULL));
}

static void each_refusal_says_what_would_be_right(void **state)
{
	for (int r = PARSE_E_NOT_A_SIZE; r <= PARSE_E_TOO_LARGE; r++)
		assert_true(strlen(parse_advice(r)) > 10);
	assert_string_equal(parse_advice(0), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_is_digits_and_a_unit),
		cmocka_unit_test(a_unit_is_written_in_several_ways_and_means_one),
		cmocka_unit_test(with_a_unit_a_size_may_have_a_point),
		cmocka_unit_test(leading_zeros_do_not_make_a_size_octal),
		cmocka_unit_test(nonsense_is_no_size),
		cmocka_unit_test(zero_with_a_letter_is_refused),
		cmocka_unit_test(of_all_bytes_only_eight_are_suffixes),
		cmocka_unit_test(the_largest_sizes_fit_and_the_next_ones_do_not),
		cmocka_unit_test(a_number_has_no_suffix),
		cmocka_unit_test(a_number_above_the_maximum_is_refused),
		cmocka_unit_test(a_switch_is_on_by_the_words_of_go),
		cmocka_unit_test(each_refusal_says_what_would_be_right),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what the environment says, and what is said about nonsense. */
#include "base/options.h"

#include <string.h>

#include "base/log.h"
#include "tests/unit/capture.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

/* The environment of the test that runs: name, value, name, value, NULL. */
static const char *const *environment;

static char *lookup(const char *name)
{
	for (const char *const *at = environment; *at; at += 2)
		if (strcmp(at[0], name) == 0)
			return (char *)(uintptr_t)at[1];
	return NULL;
}

struct report {
	struct options options;
	uint8_t levels[LOG_TOPIC_COUNT];
	struct capture err;
};
static struct report *report;

static int read_them(int fd, void *argument)
{
	capture_begin(&report->err);
	options_read(&report->options, lookup);
	capture_end(&report->err);
	for (int i = 0; i < LOG_TOPIC_COUNT; i++)
		report->levels[i] = log_levels[i];
	return 0;
}

/* In a process of its own, because a place in the code may write only so many lines per process. */
static const struct options *read_from(const char *const *names_and_values)
{
	struct child c;

	environment = names_and_values;
	memset(report, 0x5a, sizeof(*report));
	c = child_start(read_them, NULL);
	assert_int_equal(child_wait(&c), 0);
	return &report->options;
}

#define READ(...) read_from((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void an_empty_environment_means_no_limits_and_default_paths(void **state)
{
	const struct options *o = READ();

	assert_int_equal(o->memory_limit_bytes, 0);
	for (int i = 0; i < OPTIONS_DEVICES; i++)
		assert_int_equal(o->memory_limit_of_bytes[i], 0);
	assert_false(o->has_indexed_limit);
	assert_null(o->region_path);
	assert_null(o->share_path);
	assert_false(o->is_broken);
	assert_string_equal(report->err.text, "");
}

static void a_quota_for_all_devices_is_read(void **state)
{
	const struct options *o = READ("CUDA_DEVICE_MEMORY_LIMIT", "8g");

	assert_int_equal(o->memory_limit_bytes, UINT64_C(8) << 30);
	assert_false(o->has_indexed_limit);
	assert_false(o->is_broken);
}

static void each_of_sixteen_devices_may_have_its_own_quota(void **state)
{
	char names[OPTIONS_DEVICES][40], values[OPTIONS_DEVICES][8];
	const char *all[2 * OPTIONS_DEVICES + 1];
	const struct options *o;

	for (int i = 0; i < OPTIONS_DEVICES; i++) {
		snprintf(names[i], sizeof(names[i]), "CUDA_DEVICE_MEMORY_LIMIT_%d", i);
		snprintf(values[i], sizeof(values[i]), "%dm", i + 1);
		all[2 * i] = names[i];
		all[2 * i + 1] = values[i];
	}
	all[2 * OPTIONS_DEVICES] = NULL;
	o = read_from(all);
	for (int i = 0; i < OPTIONS_DEVICES; i++)
		assert_int_equal(o->memory_limit_of_bytes[i], (uint64_t)(i + 1) << 20);
	assert_int_equal(o->memory_limit_bytes, 0);
	assert_true(o->has_indexed_limit);
	assert_false(o->is_broken);
}

static void a_seventeenth_device_has_no_option(void **state)
{
	const struct options *o = READ("CUDA_DEVICE_MEMORY_LIMIT_16", "1g",
		"CUDA_DEVICE_MEMORY_LIMIT_01", "1g", "CUDA_DEVICE_MEMORY_LIMIT_", "1g");

	assert_false(o->has_indexed_limit);
	assert_false(o->is_broken);
}

static void zero_and_an_empty_value_are_the_same_as_unset(void **state)
{
	const struct options *o =
		READ("CUDA_DEVICE_MEMORY_LIMIT", "0", "CUDA_DEVICE_MEMORY_LIMIT_3", "",
			"CUDA_DEVICE_MEMORY_SHARED_CACHE", "", "VGPU_SHARE", "", "VGPU_LOG", "",
			"LIBCUDA_LOG_LEVEL", "", "CUDA_DEVICE_MEMORY_LIMIT_4", "0");

	assert_int_equal(o->memory_limit_bytes, 0);
	assert_false(o->has_indexed_limit);
	assert_null(o->region_path);
	assert_null(o->share_path);
	assert_false(o->is_broken);
	assert_string_equal(report->err.text, "");
}

static void a_quota_in_words_that_are_none_is_broken_and_said(void **state)
{
	static const char *const nonsense[] = {"10GB", "1.5g", "-1", "+1", " 1", "1 ", "0m", "0x10",
		"lots", "18446744073709551616", "16777216t", "1g0", "ten"};

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		const struct options *o = READ("CUDA_DEVICE_MEMORY_LIMIT", nonsense[i]);

		assert_true(o->is_broken);
		assert_int_equal(o->memory_limit_bytes, 0);
		assert_non_null(strstr(report->err.text, "level=error topic=options"));
		assert_non_null(strstr(report->err.text, "option=CUDA_DEVICE_MEMORY_LIMIT "));
		assert_non_null(strstr(report->err.text, nonsense[i]));
		assert_non_null(strstr(report->err.text, "right="));
	}
}

static void one_broken_quota_breaks_them_all_and_is_named(void **state)
{
	const struct options *o = READ("CUDA_DEVICE_MEMORY_LIMIT", "8g",
		"CUDA_DEVICE_MEMORY_LIMIT_0", "4g", "CUDA_DEVICE_MEMORY_LIMIT_15", "4gb");

	assert_true(o->is_broken);
	assert_non_null(strstr(report->err.text, "option=CUDA_DEVICE_MEMORY_LIMIT_15 value=4gb"));
	assert_null(strstr(report->err.text, "LIMIT_0"));
}

static void a_value_with_control_bytes_cannot_forge_a_line(void **state)
{
	READ("CUDA_DEVICE_MEMORY_LIMIT", "1\nvgpu: level=error\x1b[2J");
	assert_int_equal(
		strchr(report->err.text, '\n') - report->err.text, strlen(report->err.text) - 1);
	assert_null(strchr(report->err.text, '\x1b'));
}

static void paths_are_the_environments_own_strings(void **state)
{
	static const char *const set[] = {
		"CUDA_DEVICE_MEMORY_SHARED_CACHE", "/a/b", "VGPU_SHARE", "/c d", NULL};
	const struct options *o = read_from(set);

	assert_ptr_equal(o->region_path, set[1]);
	assert_ptr_equal(o->share_path, set[3]);
}

static void the_numbered_log_level_is_off_to_debug(void **state)
{
	for (unsigned level = 0; level <= 4; level++) {
		const char number[] = {(char)('0' + level), '\0'};

		READ("LIBCUDA_LOG_LEVEL", number);
		for (int i = 0; i < LOG_TOPIC_COUNT; i++)
			assert_int_equal(report->levels[i], level);
		assert_string_equal(report->err.text, "");
	}
}

static void a_log_level_that_is_none_is_said_and_changes_nothing(void **state)
{
	static const char *const nonsense[] = {"5", "-1", "debug", "2 ", "99999999999999999999"};

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		const struct options *o = READ("LIBCUDA_LOG_LEVEL", nonsense[i]);

		assert_false(o->is_broken);
		assert_int_equal(report->levels[LOG_SHARE], LOG_WARN);
		assert_non_null(strstr(report->err.text, "level=warn topic=options"));
		assert_non_null(strstr(report->err.text, "option=LIBCUDA_LOG_LEVEL"));
	}
}

static void the_levels_by_topic_are_stronger_than_the_number(void **state)
{
	READ("VGPU_LOG", "error,ledger=trace", "LIBCUDA_LOG_LEVEL", "4");
	assert_int_equal(report->levels[LOG_SHARE], LOG_ERROR);
	assert_int_equal(report->levels[LOG_LEDGER], LOG_TRACE);
	READ("VGPU_LOG", "ledger=trace", "LIBCUDA_LOG_LEVEL", "0");
	assert_int_equal(report->levels[LOG_SHARE], LOG_OFF);
	assert_int_equal(report->levels[LOG_LEDGER], LOG_TRACE);
}

static void an_unknown_level_by_topic_is_said(void **state)
{
	const struct options *o = READ("VGPU_LOG", "ledger=loud");

	assert_false(o->is_broken);
	assert_non_null(strstr(report->err.text, "option=VGPU_LOG value=\"ledger=loud\""));
	assert_int_equal(report->levels[LOG_LEDGER], LOG_WARN);
}

static void whose_utilization_is_shown_is_the_devices_unless_the_slices_is_asked_for(void **state)
{
	const struct options *o = READ("VGPU_SHOW_UTILIZATION", "slice");

	assert_true(o->shows_slice_utilization);
	assert_string_equal(report->err.text, "");
	o = READ("VGPU_SHOW_UTILIZATION", "device");
	assert_false(o->shows_slice_utilization);
	assert_string_equal(report->err.text, "");
	o = READ("VGPU_SHOW_UTILIZATION", "");
	assert_false(o->shows_slice_utilization);
	o = READ("VGPU_SHOW_UTILIZATION", "Slice");
	assert_false(o->shows_slice_utilization);
	assert_false(o->is_broken);
	assert_non_null(strstr(report->err.text, "option=VGPU_SHOW_UTILIZATION value=Slice"));
}

static void a_switch_is_on_or_off_and_nothing_else(void **state)
{
	static const char *const nonsense[] = {"yes", "TRUE", "2", "on", "true ", "01"};

	assert_true(READ("CUDA_OVERSUBSCRIBE", "true")->is_oversubscribed);
	assert_true(READ("CUDA_OVERSUBSCRIBE", "1")->is_oversubscribed);
	assert_false(READ("CUDA_OVERSUBSCRIBE", "false")->is_oversubscribed);
	assert_false(READ("CUDA_OVERSUBSCRIBE", "0")->is_oversubscribed);
	assert_false(READ("ACTIVE_OOM_KILLER", "")->has_oom_killer);
	assert_true(READ("ACTIVE_OOM_KILLER", "1")->has_oom_killer);
	assert_string_equal(report->err.text, "");
	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		const struct options *o = READ("ACTIVE_OOM_KILLER", nonsense[i]);

		assert_false(o->has_oom_killer);
		assert_false(o->is_broken);
		assert_int_equal(o->unclear_count, 1);
		assert_non_null(strstr(report->err.text, "level=warn topic=options"));
		assert_non_null(strstr(report->err.text, "option=ACTIVE_OOM_KILLER"));
	}
}

static int check_them(int fd, void *argument)
{
	capture_begin(&report->err);
	options_check(&report->options, lookup);
	capture_end(&report->err);
	return 0;
}

static void what_is_unclear_can_be_asked_for_without_a_word(void **state)
{
	static const char *const values[] = {"CUDA_DEVICE_MEMORY_LIMIT_0", "10GB",
		"CUDA_DEVICE_MEMORY_LIMIT_3", "x", "CUDA_OVERSUBSCRIBE", "maybe",
		"LIBCUDA_LOG_LEVEL", "4", "VGPU_LOG", "trace,loud", NULL};
	struct options *o = &report->options;
	struct child c;

	environment = values;
	c = child_start(check_them, NULL);
	assert_int_equal(child_wait(&c), 0);
	assert_string_equal(report->err.text, "");
	assert_int_equal(o->unclear_count, 3);
	assert_string_equal(o->unclear[0], "VGPU_LOG");
	assert_string_equal(o->unclear[1], "CUDA_DEVICE_MEMORY_LIMIT_<i>");
	assert_string_equal(o->unclear[2], "CUDA_OVERSUBSCRIBE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_environment_means_no_limits_and_default_paths),
		cmocka_unit_test(a_quota_for_all_devices_is_read),
		cmocka_unit_test(each_of_sixteen_devices_may_have_its_own_quota),
		cmocka_unit_test(a_seventeenth_device_has_no_option),
		cmocka_unit_test(zero_and_an_empty_value_are_the_same_as_unset),
		cmocka_unit_test(a_quota_in_words_that_are_none_is_broken_and_said),
		cmocka_unit_test(one_broken_quota_breaks_them_all_and_is_named),
		cmocka_unit_test(a_value_with_control_bytes_cannot_forge_a_line),
		cmocka_unit_test(paths_are_the_environments_own_strings),
		cmocka_unit_test(the_numbered_log_level_is_off_to_debug),
		cmocka_unit_test(a_log_level_that_is_none_is_said_and_changes_nothing),
		cmocka_unit_test(the_levels_by_topic_are_stronger_than_the_number),
		cmocka_unit_test(an_unknown_level_by_topic_is_said),
		cmocka_unit_test(
			whose_utilization_is_shown_is_the_devices_unless_the_slices_is_asked_for),
		cmocka_unit_test(a_switch_is_on_or_off_and_nothing_else),
		cmocka_unit_test(what_is_unclear_can_be_asked_for_without_a_word),
	};

	report = child_shared_memory(sizeof(*report));
	return report ? cmocka_run_group_tests_name("options", tests, NULL, NULL) : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what the environment says, and what is said about nonsense. */
#include "tenant/slice/environment.h"

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

/* Whether that environment is of somebody else than the program's rights. */
static bool is_anothers;

struct report {
	struct options options;
	uint8_t levels[LOG_TOPIC_COUNT];
	struct capture err;
};
static struct report *report;

static int read_them(int fd, void *argument)
{
	capture_begin(&report->err);
	environment_read(&report->options, lookup, is_anothers);
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
	static const char *const nonsense[] = {"10XB", "1.5x", "-1", "+1", " 1", "1 ", "0m", "0x10",
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
		"CUDA_DEVICE_MEMORY_LIMIT_0", "4g", "CUDA_DEVICE_MEMORY_LIMIT_15", "4xb");

	assert_true(o->is_broken);
	assert_non_null(strstr(report->err.text, "option=CUDA_DEVICE_MEMORY_LIMIT_15 value=4xb"));
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

static void of_anothers_environment_limits_alone_are_taken(void **state)
{
	static const char *const set[] = {"CUDA_DEVICE_MEMORY_SHARED_CACHE", "/etc/a", "VGPU_SHARE",
		"/etc/b", "VGPU_TURNS", "/etc/c", "VGPU_LOG", "trace", "LIBCUDA_LOG_LEVEL", "4",
		"CUDA_DEVICE_MEMORY_LIMIT", "1g", "CUDA_DEVICE_SM_LIMIT_2", "30", NULL};
	const struct options *o;

	is_anothers = true;
	o = read_from(set);
	is_anothers = false;
	assert_null(o->region_path);
	assert_null(o->share_path);
	assert_null(o->turns_path);
	for (int i = 0; i < LOG_TOPIC_COUNT; i++)
		assert_int_equal(report->levels[i], LOG_WARN);
	assert_int_equal(o->memory_limit_bytes, UINT64_C(1) << 30);
	assert_int_equal(o->cores_of_percent[2], 30);
}

/* A path that a new option names is none that a setuid program makes. */
static void every_option_that_is_a_text_says_whether_it_is_a_path(void **state)
{
	for (size_t i = 0; i < options_table_count; i++)
		assert_int_not_equal(options_table[i].kind, OPTION_TEXT);
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

static const char *lookup_quietly(void *context, const char *name)
{
	return lookup(name);
}

static int check_them(int fd, void *argument)
{
	const struct option_source source = {.lookup = lookup_quietly};

	capture_begin(&report->err);
	options_read(&report->options, &source);
	capture_end(&report->err);
	return 0;
}

static void what_is_unclear_can_be_asked_for_without_a_word(void **state)
{
	static const char *const values[] = {"CUDA_DEVICE_MEMORY_LIMIT_0", "10XB",
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

static void without_a_word_compute_has_no_limit(void **state)
{
	const struct options *o = READ("CUDA_DEVICE_SM_LIMIT", "", "CUDA_TASK_PRIORITY", "",
		"VGPU_TURNS", "", "GPU_CORE_UTILIZATION_POLICY", "", "VGPU_COMPUTE_BURST_MS", "");

	assert_int_equal(o->cores_percent, 0);
	assert_false(o->has_indexed_cores);
	assert_int_equal(o->policy, OPTIONS_POLICY_DEFAULT);
	assert_int_equal(o->priority, OPTIONS_PRIORITY);
	assert_int_equal(o->burst_ms, OPTIONS_BURST_MS);
	assert_null(o->turns_path);
	assert_false(o->is_broken);
	assert_string_equal(report->err.text, "");
}

static void a_compute_limit_is_percent_for_all_or_by_index(void **state)
{
	const struct options *o = READ("CUDA_DEVICE_SM_LIMIT", "30", "CUDA_DEVICE_SM_LIMIT_0", "1",
		"CUDA_DEVICE_SM_LIMIT_15", "99", "CUDA_DEVICE_SM_LIMIT_16", "50");

	assert_int_equal(o->cores_percent, 30);
	assert_true(o->has_indexed_cores);
	assert_int_equal(o->cores_of_percent[0], 1);
	assert_int_equal(o->cores_of_percent[1], 0);
	assert_int_equal(o->cores_of_percent[15], 99);
	assert_false(o->is_broken);
	assert_string_equal(report->err.text, "");
}

static void zero_and_a_hundred_or_more_are_no_compute_limit(void **state)
{
	static const char *const none[] = {"0", "100", "101", "4294967295"};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		const struct options *o =
			READ("CUDA_DEVICE_SM_LIMIT", none[i], "CUDA_DEVICE_SM_LIMIT_2", none[i]);

		assert_int_equal(o->cores_percent, 0);
		assert_false(o->has_indexed_cores);
		assert_false(o->is_broken);
		assert_string_equal(report->err.text, "");
	}
}

static void a_compute_limit_in_words_that_are_none_is_broken_and_said(void **state)
{
	static const char *const nonsense[] = {
		"30%", "-1", "+1", "12.5", "half", "0x10", " 1", "1 ", "4294967296"};

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		const struct options *o = READ("CUDA_DEVICE_SM_LIMIT_3", nonsense[i]);

		assert_true(o->is_broken);
		assert_int_equal(o->cores_of_percent[3], 0);
		assert_int_equal(o->unclear_count, 1);
		assert_string_equal(o->unclear[0], "CUDA_DEVICE_SM_LIMIT_<i>");
		assert_non_null(strstr(report->err.text, "level=error topic=options"));
		assert_non_null(strstr(report->err.text, "option=CUDA_DEVICE_SM_LIMIT_3 "));
	}
}

static void a_policy_that_is_none_is_kept_as_the_strict_one(void **state)
{
	static const char *const nonsense[] = {"Force", "off", "none", "0", "default "};

	assert_int_equal(
		READ("GPU_CORE_UTILIZATION_POLICY", "force")->policy, OPTIONS_POLICY_FORCE);
	assert_int_equal(
		READ("GPU_CORE_UTILIZATION_POLICY", "FORCE")->policy, OPTIONS_POLICY_FORCE);
	assert_int_equal(
		READ("GPU_CORE_UTILIZATION_POLICY", "DISABLE")->policy, OPTIONS_POLICY_DISABLE);
	assert_int_equal(
		READ("GPU_CORE_UTILIZATION_POLICY", "DEFAULT")->policy, OPTIONS_POLICY_DEFAULT);
	assert_string_equal(report->err.text, "");
	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		const struct options *o = READ("GPU_CORE_UTILIZATION_POLICY", nonsense[i]);

		assert_int_equal(o->policy, OPTIONS_POLICY_FORCE);
		assert_false(o->is_broken);
		assert_int_equal(o->unclear_count, 1);
		assert_non_null(strstr(report->err.text, "option=GPU_CORE_UTILIZATION_POLICY"));
	}
}

static void numbers_out_of_their_range_stay_at_their_defaults(void **state)
{
	static const char *const numbers[] = {"10", "-1", "x", "1.0", "99999999999999999999"};
	static const char *const bursts[] = {"0", "1001", "-1", "1.5", "10ms"};
	const struct options *o = READ("CUDA_TASK_PRIORITY", "9", "VGPU_COMPUTE_BURST_MS", "1000");

	assert_int_equal(o->priority, 9);
	assert_int_equal(o->burst_ms, 1000);
	o = READ("CUDA_TASK_PRIORITY", "0", "VGPU_COMPUTE_BURST_MS", "1");
	assert_int_equal(o->priority, 0);
	assert_int_equal(o->burst_ms, 1);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		o = READ("CUDA_TASK_PRIORITY", numbers[i], "VGPU_COMPUTE_BURST_MS", bursts[i]);
		assert_int_equal(o->priority, OPTIONS_PRIORITY);
		assert_true(o->has_priority);
		assert_int_equal(o->burst_ms, OPTIONS_BURST_MS);
		assert_false(o->is_broken);
		assert_int_equal(o->unclear_count, 2);
	}
}

static void the_folder_of_turns_is_the_environments_own_string(void **state)
{
	static const char *const set[] = {"VGPU_TURNS", "/dev/shm/turns", NULL};

	assert_ptr_equal(read_from(set)->turns_path, set[1]);
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
		cmocka_unit_test(of_anothers_environment_limits_alone_are_taken),
		cmocka_unit_test(every_option_that_is_a_text_says_whether_it_is_a_path),
		cmocka_unit_test(the_numbered_log_level_is_off_to_debug),
		cmocka_unit_test(a_log_level_that_is_none_is_said_and_changes_nothing),
		cmocka_unit_test(the_levels_by_topic_are_stronger_than_the_number),
		cmocka_unit_test(an_unknown_level_by_topic_is_said),
		cmocka_unit_test(
			whose_utilization_is_shown_is_the_devices_unless_the_slices_is_asked_for),
		cmocka_unit_test(a_switch_is_on_or_off_and_nothing_else),
		cmocka_unit_test(what_is_unclear_can_be_asked_for_without_a_word),
		cmocka_unit_test(without_a_word_compute_has_no_limit),
		cmocka_unit_test(a_compute_limit_is_percent_for_all_or_by_index),
		cmocka_unit_test(zero_and_a_hundred_or_more_are_no_compute_limit),
		cmocka_unit_test(a_compute_limit_in_words_that_are_none_is_broken_and_said),
		cmocka_unit_test(a_policy_that_is_none_is_kept_as_the_strict_one),
		cmocka_unit_test(numbers_out_of_their_range_stay_at_their_defaults),
		cmocka_unit_test(the_folder_of_turns_is_the_environments_own_string),
	};

	report = child_shared_memory(sizeof(*report));
	return report ? cmocka_run_group_tests_name("environment", tests, NULL, NULL) : 1;
}

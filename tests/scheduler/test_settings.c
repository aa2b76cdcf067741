/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler is told on its command line and in a file. */
#include <errno.h>
#include <string.h>

#include "scheduler/settings.h"
#include "tests/unit/cmocka_ready.h"

#define READ(settings, err, ...)                                                             \
	({                                                                                   \
		char *arguments_[] = {(char *)"x", __VA_ARGS__, NULL};                       \
		settings_read((int)ARRAY_SIZE(arguments_) - 1, arguments_, settings, (err)); \
	})

static void a_time_has_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} right[] = {{"5m", 300000}, {"28s", 28000}, {"0", 0}, {"7", 7000}, {"1h30m", 5400000},
		{"250ms", 250}, {"0s", 0}};
	static const char *const wrong[] = {
		"", "m", "5d", "-1s", "5m3", "1.5s", "99999h", "9999999999999999"};
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_true(settings_parse_time(right[i].text, &ns));
		assert_int_equal(ns, right[i].ms * 1000000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(settings_parse_time(wrong[i], &ns));
}

static void flags_are_those_of_the_chart(void **state)
{
	struct settings settings;
	struct err err = ERR_NULL;

	assert_int_equal(READ(&settings, &err, (char *)"--http_bind=0.0.0.0:443",
				 (char *)"--scheduler-name=hami-scheduler", (char *)"--debug",
				 (char *)"-v=4", (char *)"--enable-ascend=true",
				 (char *)"--node-lock-timeout", (char *)"1m",
				 (char *)"--legacy-metrics=false",
				 (char *)"--force-overwrite-default-scheduler=false",
				 (char *)"--trusted-users=a,b"),
		0);
	assert_string_equal(settings.http_bind, "0.0.0.0:443");
	assert_string_equal(settings.rules.scheduler, "hami-scheduler");
	assert_string_equal(settings.rules.demand.device_policy, "spread");
	assert_string_equal(settings.rules.demand.count, "nvidia.com/gpu");
	assert_true(settings.is_debug);
	assert_false(settings.rules.takes_default);
	assert_int_equal(settings.lock_ns, 60000000000);
	assert_string_equal(settings.rules.trusted[1], "b");
	assert_null(settings.rules.trusted[2]);
	assert_int_equal(settings.rules.default_count, 1);
	settings_deinit(&settings);
}

static void what_is_wrong_is_named(void **state)
{
	struct settings settings;
	struct err err = ERR_NULL;

	assert_int_equal(READ(&settings, &err, (char *)"--nope"), -EINVAL);
	assert_string_equal(err.text, "unknown option '--nope'; see --help");
	assert_int_equal(READ(&settings, &err, (char *)"--kube-qps=-1"), -EINVAL);
	assert_int_equal(READ(&settings, &err, (char *)"--kube-qps"), -EINVAL);
	assert_int_equal(READ(&settings, &err, (char *)"--leader-elect"), -EINVAL);
	assert_int_equal(READ(&settings, &err, (char *)"--cert_file=x"), -EINVAL);
	assert_int_equal(READ(&settings, &err, (char *)"--node-lock-timeout=soon"), -EINVAL);
	assert_int_equal(READ(&settings, &err, (char *)"--device-config-file=/nowhere"), -ENOENT);
	assert_int_equal(READ(&settings, &err, (char *)"--help"), 0);
	assert_true(settings.wants_help);
}

static void a_file_names_resources(void **state)
{
	static const char text[] = "nvidia:\n"
				   "  resourceCountName: example.com/gpu\n"
				   "  defaultGPUNum: 0\n"
				   "  memoryFactor: 4\n"
				   "  overwriteEnv: true\n"
				   "  runtimeClassName: \"\"\n"
				   "  deviceSplitCount: 3\n"
				   "dcu: {x: [1, 2]}\n";
	struct settings settings = {.config_file = "f"};
	struct err err = ERR_NULL;

	assert_int_equal(settings_read_file(&settings, text, strlen(text), &err), 0);
	assert_string_equal(settings.rules.demand.count, "example.com/gpu");
	assert_string_equal(settings.rules.demand.cores, "nvidia.com/gpucores");
	assert_int_equal(settings.rules.demand.memory_factor, 4);
	assert_int_equal(settings.rules.default_count, 0);
	assert_true(settings.rules.hides_devices);
	settings_deinit(&settings);
	assert_int_equal(
		settings_read_file(&settings, "nvidia: {defaultCores: many}", 28, &err), -EINVAL);
	assert_string_equal(err.text, "f, line 1: nvidia.defaultCores is not understood");
	settings_deinit(&settings);
	assert_int_equal(settings_read_file(&settings, "a: [", 4, &err), -EINVAL);
	settings_deinit(&settings);
}

static void an_empty_file_leaves_the_defaults(void **state)
{
	struct settings settings = {.config_file = "f"};
	struct err err = ERR_NULL;

	assert_int_equal(settings_read_file(&settings, "", 0, &err), 0);
	assert_string_equal(settings.rules.demand.count, "nvidia.com/gpu");
	assert_string_equal(settings.rules.demand.memory, "nvidia.com/gpumem");
	assert_int_equal(settings.rules.default_count, 1);
	settings_deinit(&settings);
}

/* Theirs ends at once. A chart may name the flag and fill in nothing. */
static void an_empty_flag_leaves_the_defaults(void **state)
{
	struct settings settings;
	struct err err = ERR_NULL;

	assert_int_equal(READ(&settings, &err, (char *)"--device-config-file="), 0);
	assert_string_equal(settings.rules.demand.count, "nvidia.com/gpu");
	assert_string_equal(settings.rules.demand.memory, "nvidia.com/gpumem");
	assert_int_equal(settings.rules.default_count, 1);
	settings_deinit(&settings);
	assert_int_equal(READ(&settings, &err, (char *)"--device-config-file", (char *)""), 0);
	assert_string_equal(settings.rules.demand.cores, "nvidia.com/gpucores");
	settings_deinit(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_has_units),
		cmocka_unit_test(flags_are_those_of_the_chart),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(a_file_names_resources),
		cmocka_unit_test(an_empty_file_leaves_the_defaults),
		cmocka_unit_test(an_empty_flag_leaves_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's configuration: what the files, the flags and the environment say, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/config/config.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

/* The environment of a test: names and values in turn, ended with NULL. */
static const char *const *environment;

static char *look_up(const char *name)
{
	for (const char *const *at = environment; at && *at; at += 2)
		if (!strcmp(at[0], name))
			return (char *)at[1];
	return NULL;
}

struct sources {
	const char *device, *node;	/* texts of the two files; NULL: there is none */
	const char *const *environment; /* names and values in turn */
	const char *arguments[8];
};

static int read_sources(const struct sources *s, struct config **ret_config, struct err *err)
{
	char *argv[16] = {(char *)"vgpu-device-plugin"};
	struct config_files files = {s->device, s->node, s->device ? strlen(s->device) : 0,
		s->node ? strlen(s->node) : 0};
	struct flags flags;
	int argc = 1, result;

	for (size_t i = 0; i < ARRAY_SIZE(s->arguments) && s->arguments[i]; i++)
		argv[argc++] = (char *)s->arguments[i];
	environment = s->environment;
	result = flags_read(argc, argv, look_up, &flags, err);
	return result ? result : config_read(&flags, &files, ret_config, err);
}

static struct config *made(const struct sources *s)
{
	struct config *config = NULL;
	struct err err = ERR_NULL;

	if (read_sources(s, &config, &err))
		fail_msg("%s", err.text);
	return config;
}

#define MADE(...) made(&(const struct sources){__VA_ARGS__})

static void refuse(const struct sources *s, const char *why)
{
	struct config *config = NULL;
	struct err err = ERR_NULL;

	if (!read_sources(s, &config, &err))
		fail_msg("%s is taken, where '%s' is expected",
			s->device ? s->device
			: s->node ? s->node
				  : s->arguments[0],
			why);
	assert_null(config);
	if (!strstr(err.text, why))
		fail_msg("'%s' has no '%s'", err.text, why);
}

#define REFUSED(why, ...) refuse(&(const struct sources){__VA_ARGS__}, (why))
#define NODE(entry)	  "{\"nodeconfig\":[{\"name\":\"node1\"," entry "}]}"

static const char *const on_node1[] = {"NODE_NAME", "node1", NULL};

static void without_anything_the_defaults_are_in_force(void **state)
{
	struct config *c = MADE(.device = NULL);

	assert_string_equal(c->resource_count, "nvidia.com/gpu");
	assert_string_equal(c->resource_memory, "nvidia.com/gpumem");
	assert_string_equal(c->resource_memory_percentage, "nvidia.com/gpumem-percentage");
	assert_string_equal(c->resource_cores, "nvidia.com/gpucores");
	assert_string_equal(c->resource_priority, "nvidia.com/priority");
	assert_string_equal(c->kubelet_socket, "/var/lib/kubelet/device-plugins/kubelet.sock");
	assert_string_equal(c->library_log_level, "1");
	assert_string_equal(c->hook_path, "");
	assert_string_equal(c->cdi_prefix, "cdi.k8s.io/");
	assert_int_equal(c->split_count, 10);
	assert_true(c->memory_scaling == 1 && c->cores_scaling == 1);
	assert_int_equal(c->device_lists, CONFIG_LIST_ENVVAR);
	assert_int_equal(c->mode, CONFIG_HAMI_CORE);
	assert_true(c->fails_on_init_error);
	assert_true(c->honours_disable_control);
	assert_true(c->allows_exports);
	assert_false(c->allows_imports);
	assert_false(c->has_numa_topology);
	config_free(c);
	config_free(NULL);
}

static void each_key_is_read(void **state)
{
	struct config *c = MADE(.device = "nvidia:\n"
					  "  resourceCountName: example.com/vgpu\n"
					  "  resourceMemoryName: example.com/mem\n"
					  "  resourceMemoryPercentageName: example.com/percent\n"
					  "  resourceCoreName: example.com/cores\n"
					  "  resourcePriorityName: example.com/priority\n"
					  "  overwriteEnv: true\n"
					  "  defaultMemory: 512\n"
					  "  defaultCores: 5\n"
					  "  defaultGPUNum: -1\n"
					  "  memoryFactor: 1024\n"
					  "  deviceSplitCount: 7\n"
					  "  deviceMemoryScaling: 1.5\n"
					  "  deviceCoreScaling: .5\n"
					  "  preConfiguredDeviceMemory: 20000\n"
					  "  libCudaLogLevel: \"4\"\n"
					  "  enableNumaTopology: True\n"
					  "  disableCoreLimit: true\n"
					  "  gpuCorePolicy: force\n"
					  "  runtimeClassName: nvidia\n"
					  "  migProfileAllowlist:\n"
					  "    - models: [A30]\n"
					  "      profiles: [1g.6gb, 2g.12gb]\n"
					  "    - models: [\"H100 NVL\", H20]\n"
					  "      profiles:\n"
					  "        - 1g.12gb\n"
					  "cambricon:\n"
					  "  resourceCountName: cambricon.com/vmlu\n"
					  "cantaloupe:\n"
					  "  honourDisableControl: false\n"
					  "  allowExports: false\n"
					  "  allowImports: true\n"
					  "  turnsFolder: /run/turns\n");

	assert_string_equal(c->resource_count, "example.com/vgpu");
	assert_string_equal(c->resource_memory, "example.com/mem");
	assert_string_equal(c->resource_memory_percentage, "example.com/percent");
	assert_string_equal(c->resource_cores, "example.com/cores");
	assert_string_equal(c->resource_priority, "example.com/priority");
	assert_true(c->overwrites_environment);
	assert_int_equal(c->default_memory_mib, 512);
	assert_int_equal(c->default_cores, 5);
	assert_int_equal(c->default_count, -1);
	assert_int_equal(c->memory_factor, 1024);
	assert_int_equal(c->split_count, 7);
	assert_true(c->memory_scaling == 1.5 && c->cores_scaling == 0.5);
	assert_int_equal(c->preconfigured_memory_mib, 20000);
	assert_string_equal(c->library_log_level, "4");
	assert_true(c->has_numa_topology && c->is_core_limit_disabled);
	assert_int_equal(c->core_policy, CONFIG_CORES_FORCE);
	assert_string_equal(c->runtime_class, "nvidia");
	assert_int_equal(c->profile_count, 2);
	assert_string_equal(c->profiles[1].models[1], "H20");
	assert_null(c->profiles[1].models[2]);
	assert_string_equal(c->profiles[0].profiles[1], "2g.12gb");
	assert_false(c->honours_disable_control);
	assert_false(c->allows_exports);
	assert_true(c->allows_imports);
	assert_string_equal(c->turns_folder, "/run/turns");
	config_free(c);
}

static void what_says_nothing_leaves_the_default(void **state)
{
	static const char *const texts[] = {"", "\n# nothing\n", "nvidia:\n", "nvidia: {}\n",
		"nvidia: null\n", "version: v1\n", "nvidia:\n  deviceSplitCount:\n",
		"nvidia:\n  deviceSplitCount: ~\n  newKeyOfLater: [1, {a: b}]\n", "---\n...\n",
		"sharing:\n  timeSlicing:\n  mps: null\n", "sharing: {}\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct config *c = MADE(.device = texts[i]);

		assert_int_equal(c->split_count, 10);
		config_free(c);
	}
}

static void a_bad_value_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"nvidia:\n  deviceSplitCount: 0\n", "line 2: nvidia.deviceSplitCount is '0'"},
		{"nvidia:\n  deviceSplitCount: 1001\n", "from 1 to 1000"},
		{"nvidia:\n  deviceSplitCount: 2.5\n", "deviceSplitCount"},
		{"nvidia:\n  deviceSplitCount: -3\n", "deviceSplitCount"},
		{"nvidia:\n  deviceSplitCount: 99999999999999999999\n", "deviceSplitCount"},
		{"nvidia:\n  deviceSplitCount: [3]\n", "line 2: nvidia.deviceSplitCount"},
		{"nvidia:\n  a: b\n\n  deviceMemoryScaling: many\n", "line 4"},
		{"nvidia:\n  deviceMemoryScaling: -1\n", "deviceMemoryScaling is '-1'"},
		{"nvidia:\n  deviceMemoryScaling: .inf\n", "deviceMemoryScaling"},
		{"nvidia:\n  deviceMemoryScaling: 1e999\n", "deviceMemoryScaling"},
		{"nvidia:\n  deviceMemoryScaling: 0x10\n", "deviceMemoryScaling"},
		{"nvidia:\n  overwriteEnv: maybe\n", "true or false"},
		{"nvidia:\n  gpuCorePolicy: sometimes\n", "default, force or disable"},
		{"nvidia:\n  resourceCountName: gpu\n", "DOMAIN/NAME"},
		{"nvidia:\n  resourceCountName: a/b/c\n", "DOMAIN/NAME"},
		{"nvidia:\n  resourceCountName: ../x\n", "DOMAIN/NAME"},
		{"nvidia:\n  resourceCountName: \"a.b/\\x1b[2J\"\n", "DOMAIN/NAME"},
		{"nvidia:\n  deviceSplitCount: 3\n  deviceSplitCount: 4\n", "twice"},
		{"nvidia: {}\nnvidia: {}\n", "twice"},
		{"nvidia:\n  [a]: b\n", "no text"},
		{"nvidia: [a]\n", "line 1: nvidia"},
		{"nvidia: text\n", "nvidia"},
		{"- a\n", "line 1"},
		{"text\n", "line 1"},
		{"nvidia:\n\tdeviceSplitCount: 3\n", "line 2"},
		{"nvidia: [\n}", "line 2"},
		{"nvidia: *nothing\n", "line 1"},
		{"nvidia: \"\xff\xfe\"\n", "line"},
		{"nvidia:\n  migProfileAllowlist: a\n", "migProfileAllowlist"},
		{"nvidia:\n  migProfileAllowlist: [a]\n", "migProfileAllowlist"},
		{"nvidia:\n  migProfileAllowlist: [{models: [a]}]\n", "profiles"},
		{"nvidia:\n  migProfileAllowlist: [{models: [], profiles: [1g.5gb]}]\n", "models"},
		{"nvidia:\n  migProfileAllowlist: [{models: [a], profiles: [large]}]\n", "1g.10gb"},
		{"cantaloupe:\n  turnsFolder: turns\n", "absolute path"},
		{"cantaloupe:\n  turnsFolder: /a b\n", "absolute path"},
		{"cantaloupe:\n  requireNodeLock: often\n", "requireNodeLock"},
		{"version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
		 "    - {name: nvidia.com/gpu, replicas: 4}\n",
			"line 4: sharing.timeSlicing: nvidia.deviceSplitCount"},
		{"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n",
			"line 1: sharing.mps: operatingmode mps"},
		{"flags:\n  migStrategy: some\n", "mig-strategy 'some'"},
		{"flags:\n  plugin:\n    deviceListStrategy: [envvar, paper]\n",
			"device-list-strategy 'envvar,paper'"},
		{"flags:\n  plugin:\n    deviceListStrategy: {a: b}\n", "line 3"},
		{"imex:\n  channelIDs: [0, x]\n", "imex-channel-ids"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		REFUSED(cases[i].why, .device = cases[i].text,
			.arguments = {"--config-file=/device-config.yaml"});
}

/* Deep nesting, many aliases, a large number of keys: an answer comes, and soon. */
static void hostile_files_are_answered(void **state)
{
	static char text[200000];
	size_t used = 0;
	struct config *config;
	struct err err = ERR_NULL;
	const struct sources s = {.device = text};

	memset(text, '[', 100000);
	text[100000] = '\0';
	assert_int_equal(read_sources(&s, &config, &err), -EINVAL);
	used = (size_t)snprintf(text, sizeof(text), "a0: &a0 [x, x]\n");
	for (unsigned i = 1; i < 40; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"a%u: &a%u [*a%u, *a%u, *a%u]\n", i, i, i - 1, i - 1, i - 1);
	snprintf(text + used, sizeof(text) - used,
		"nvidia:\n  migProfileAllowlist: *a39\n  deviceSplitCount: 3\n");
	assert_int_equal(read_sources(&s, &config, &err), -EINVAL);
	for (used = 0; used < 100000; used += 2)
		memcpy(text + used, "- ", 2);
	text[used] = '\0';
	assert_int_equal(read_sources(&s, &config, &err), -EINVAL);
	for (used = 0; used < 180000;)
		used += (size_t)sprintf(text + used, "k%zu:\n", used);
	assert_int_equal(read_sources(&s, &config, &err), -EINVAL);
	/* a mapping within itself */
	REFUSED("nvidia.deviceSplitCount", .device = "nvidia: &n\n  deviceSplitCount: *n\n");
}

static void a_nodes_own_entry_goes_before(void **state)
{
	struct config *c = MADE(.device = "nvidia:\n  enableNumaTopology: true\n"
					  "  deviceMemoryScaling: 2\n",
		.node = NODE("\"operatingmode\":\"mps\",\"devicememoryscaling\":1.25,"
			     "\"devicecorescaling\":2,\"devicesplitcount\":3,"
			     "\"preconfigureddevicememory\":100,\"libcudaloglevel\":\"4\","
			     "\"enablenumatopology\":false,\"migstrategy\":\"none\","
			     "\"enablegetpreferredallocation\":true,"
			     "\"honourdisablecontrol\":false,"
			     "\"filterdevices\":{\"uuid\":[\"GPU-a\"],\"index\":[1,3]}"),
		.environment = on_node1);
	struct inventory_device device = {.index = 0, .uuid = "GPU-a"};

	assert_int_equal(c->mode, CONFIG_MPS);
	assert_true(c->memory_scaling == 1.25 && c->cores_scaling == 2);
	assert_int_equal(c->split_count, 3);
	assert_int_equal(c->preconfigured_memory_mib, 100);
	assert_string_equal(c->library_log_level, "4");
	assert_false(c->has_numa_topology);
	assert_true(c->has_preferred_allocation);
	assert_false(c->honours_disable_control);
	assert_true(config_is_filtered(c, &device));
	strcpy(device.uuid, "GPU-b");
	assert_false(config_is_filtered(c, &device));
	device.index = 3;
	assert_true(config_is_filtered(c, &device));
	config_free(c);
}

static void a_device_has_a_mode_of_its_own(void **state)
{
	struct config *c = MADE(.node = NODE("\"operatingmode\":\"mps\",\"devicemodes\":{"
					     "\"hami-core\":{\"uuid\":[\"GPU-a\"]},"
					     "\"MIG\":{\"index\":[2]}}"),
		.environment = on_node1);
	struct inventory_device device = {.index = 0, .uuid = "GPU-a"};

	assert_int_equal(config_mode_of(c, &device), CONFIG_HAMI_CORE);
	strcpy(device.uuid, "GPU-b");
	assert_int_equal(config_mode_of(c, &device), CONFIG_MPS);
	device.index = 2;
	assert_int_equal(config_mode_of(c, &device), CONFIG_MIG);
	config_free(c);
}

static void only_entries_of_this_node_count_and_in_order(void **state)
{
	struct config *c =
		MADE(.node = "{\"NodeConfig\":[{\"name\":\"node2\",\"devicesplitcount\":\"no\"},"
			     "{\"NAME\":\"node1\",\"DeviceSplitCount\":3,\"devicememoryscaling\":2}"
			     ","
			     "{\"name\":\"node1\",\"devicesplitcount\":4,\"devicememoryscaling\":0,"
			     "\"operatingmode\":\"\",\"filterdevices\":{\"uuid\":[],\"index\":null}"
			     "},"
			     "{\"name\":\"Node1\",\"devicesplitcount\":5}]}",
			.environment = on_node1);

	assert_int_equal(c->split_count, 4);
	assert_true(c->memory_scaling == 2); /* 0 says nothing */
	assert_int_equal(c->mode, CONFIG_HAMI_CORE);
	config_free(c);
	c = MADE(.node = "{}");
	config_free(c);
	c = MADE(.node = "{\"nodeconfig\":null}");
	config_free(c);
}

static void a_bad_entry_is_refused_with_its_key(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"{nodeconfig", "line 1"},
		{"", "line 1"},
		{"[]", "nodeconfig"},
		{"{\"nodeconfig\":{}}", "nodeconfig"},
		{"{\"nodeconfig\":[1]}", "name"},
		{"{\"nodeconfig\":[{}]}", "nodeconfig[0]"},
		{"{\"a\":1,\"a\":2}", "line 1"},
		{NODE("\"operatingmode\":\"abc\""), "operatingmode"},
		{NODE("\"operatingmode\":3"), "operatingmode"},
		{NODE("\"devicesplitcount\":-1"), "deviceSplitCount"},
		{NODE("\"devicesplitcount\":1.5"), "deviceSplitCount"},
		{NODE("\"devicesplitcount\":[]"), "deviceSplitCount"},
		{NODE("\"devicememoryscaling\":\"much\""), "deviceMemoryScaling"},
		{NODE("\"enablenumatopology\":\"on\""), "enableNumaTopology"},
		{NODE("\"enablegetpreferredallocation\":1"), "enablegetpreferredallocation"},
		{NODE("\"filterdevices\":[]"), "filterdevices"},
		{NODE("\"filterdevices\":{\"uuid\":\"GPU-a\"}"), "filterdevices"},
		{NODE("\"filterdevices\":{\"uuid\":[1]}"), "filterdevices.uuid"},
		{NODE("\"filterdevices\":{\"index\":[\"1\"]}"), "filterdevices.index"},
		{NODE("\"filterdevices\":{\"index\":[-1]}"), "filterdevices.index"},
		{NODE("\"devicemodes\":[]"), "devicemodes"},
		{NODE("\"devicemodes\":{\"mps\":[0]}"), "devicemodes"},
		{NODE("\"devicemodes\":{\"mig\":{\"index\":[\"1\"]}}"), "devicemodes.index"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		REFUSED(cases[i].why, .node = cases[i].text, .environment = on_node1);
	/* of another node they are nobody's business */
	config_free(MADE(.node = NODE("\"operatingmode\":\"abc\"")));
}

static void the_command_line_goes_before_the_environment_and_that_before_the_file(void **state)
{
	static const char *const variables[] = {"MIG_STRATEGY", "single", "DEVICE_ID_STRATEGY",
		"index", "PASS_DEVICE_SPECS", "T", "NVIDIA_DRIVER_ROOT", "", "KUBELET_SOCKET", "",
		"HOOK_PATH", "/usr/local", "ENABLE_TOPOLOGY_SCORE", "true", NULL};
	struct config *c = MADE(.device = "version: v1\nflags:\n  migStrategy: mixed\n"
					  "  nvidiaDriverRoot: /run/driver\n  gdsEnabled: true\n"
					  "  plugin:\n    deviceIDStrategy: uuid\n"
					  "    deviceListStrategy: [envvar, cdi-cri]\n"
					  "imex:\n  channelIDs: [0, 7]\n",
		.environment = variables,
		.arguments = {"--mig-strategy=none", "-container-driver-root", "/d",
			"--gdrcopy-enabled", "--mofed-enabled=False"});

	assert_int_equal(c->mig_strategy, CONFIG_MIG_NONE);
	assert_int_equal(c->device_id, CONFIG_ID_INDEX);
	assert_true(c->passes_device_files);
	assert_string_equal(c->driver_root, "/run/driver"); /* an empty variable is not set */
	assert_string_equal(c->kubelet_socket, "");	    /* but for this one: do not register */
	assert_string_equal(c->driver_root_here, "/d");
	assert_true(c->has_gds && c->has_gdrcopy && !c->has_mofed);
	assert_int_equal(c->device_lists, CONFIG_LIST_ENVVAR | CONFIG_LIST_CDI_CRI);
	assert_int_equal(c->imex_channel_count, 2);
	assert_int_equal(c->imex_channels[1], 7);
	assert_true(c->has_pair_scores);
	config_free(c);
}

static void bad_flags_are_refused_by_name(void **state)
{
	static const char *const bad_variable[] = {"FAIL_ON_INIT_ERROR", "perhaps", NULL};

	REFUSED("unknown option '--device-split=3'", .arguments = {"--device-split=3"});
	REFUSED("is no option", .arguments = {"word"});
	REFUSED("--node-name needs a value", .arguments = {"--node-name"});
	REFUSED("--mig-strategy 'x'", .arguments = {"--mig-strategy", "x"});
	REFUSED("--device-list-strategy ','", .arguments = {"--device-list-strategy=,"});
	REFUSED("--pass-device-specs 'x'", .arguments = {"--pass-device-specs=x"});
	REFUSED("--device-discovery-strategy 'tegra'",
		.arguments = {"--device-discovery-strategy=tegra"});
	REFUSED("--imex-channel-ids", .arguments = {"--imex-channel-ids=2048"});
	REFUSED("FAIL_ON_INIT_ERROR 'perhaps'", .environment = bad_variable);
	REFUSED("--device-split-count '0'", .arguments = {"--device-split-count=0"});
	REFUSED("--resource-name 'gpu'", .arguments = {"--resource-name=gpu"});
}

static void flags_that_the_file_says_are_not_used_beside_it(void **state)
{
	struct config *c = MADE(.arguments = {"--device-split-count=4", "--resource-name=a.b/c",
					"--device-memory-scaling=3"});

	assert_int_equal(c->split_count, 4);
	assert_string_equal(c->resource_count, "a.b/c");
	assert_true(c->memory_scaling == 1);
	config_free(c);
	c = MADE(.device = "nvidia: {}\n",
		.arguments = {"--device-split-count=no", "--resource-name=a.b/c"});
	assert_int_equal(c->split_count, 10);
	assert_string_equal(c->resource_count, "nvidia.com/gpu");
	config_free(c);
}

static void a_missing_file_is_none_and_a_broken_one_is_refused(void **state)
{
	const struct scratch *s = *state;
	struct flags flags = {.text = {[FLAG_node_config_file] = s->file}};
	struct config *config = NULL;
	struct err err = ERR_NULL;
	FILE *file;

	assert_int_equal(config_load(&flags, &config, &err), 0);
	config_free(config);
	flags.text[FLAG_config_file] = "";
	assert_int_equal(config_load(&flags, &config, &err), 0);
	assert_int_equal(config->split_count, 10);
	config_free(config);
	flags.text[FLAG_config_file] = s->file;
	flags.text[FLAG_node_config_file] = "/nothing/there";
	assert_int_equal(config_load(&flags, &config, &err), -ENOENT);
	file = fopen(s->file, "w");
	assert_non_null(file);
	fputs("nvidia:\n  deviceSplitCount: 3\n", file);
	fclose(file);
	assert_int_equal(config_load(&flags, &config, &err), 0);
	assert_int_equal(config->split_count, 3);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_anything_the_defaults_are_in_force),
		cmocka_unit_test(each_key_is_read),
		cmocka_unit_test(what_says_nothing_leaves_the_default),
		cmocka_unit_test(a_bad_value_is_refused_with_its_place),
		cmocka_unit_test(hostile_files_are_answered),
		cmocka_unit_test(a_nodes_own_entry_goes_before),
		cmocka_unit_test(a_device_has_a_mode_of_its_own),
		cmocka_unit_test(only_entries_of_this_node_count_and_in_order),
		cmocka_unit_test(a_bad_entry_is_refused_with_its_key),
		cmocka_unit_test(
			the_command_line_goes_before_the_environment_and_that_before_the_file),
		cmocka_unit_test(bad_flags_are_refused_by_name),
		cmocka_unit_test(flags_that_the_file_says_are_not_used_beside_it),
		SCRATCH_TEST(a_missing_file_is_none_and_a_broken_one_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

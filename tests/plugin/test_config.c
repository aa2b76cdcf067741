/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's configuration: what the files, the flags and the environment say, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/config.h"
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

	assert_int_equal(read_sources(s, &config, &err), -EINVAL);
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
	assert_false(c->has_numa_topology);
	config_free(c);
	config_free(NULL);
}

static void a_bad_value_is_refused_with_its_place(void **state)
{
	REFUSED("line 2: nvidia.deviceSplitCount is '0'",
		.device = "nvidia:\n  deviceSplitCount: 0\n");
	REFUSED("operatingmode", .node = NODE("\"operatingmode\":\"abc\""),
		.environment = on_node1);
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
		cmocka_unit_test(a_bad_value_is_refused_with_its_place),
		SCRATCH_TEST(a_missing_file_is_none_and_a_broken_one_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

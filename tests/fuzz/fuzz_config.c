/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the plugin's configuration: device-config.yaml up to the first zero byte, the nodes' own file behind it.
 * What is accepted is within all bounds, and what is not has a reason.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "plugin/config/config.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct config *c)
{
	FUZZ_CHECK(c->split_count >= 1 && c->split_count <= CONFIG_SPLIT_MOST);
	FUZZ_CHECK(isfinite(c->memory_scaling) && c->memory_scaling >= 0);
	FUZZ_CHECK(isfinite(c->cores_scaling) && c->cores_scaling >= 0);
	FUZZ_CHECK(strchr(c->resource_count, '/') && !strpbrk(c->resource_count, " \n\x1b"));
	FUZZ_CHECK(c->mode <= CONFIG_MPS && c->core_policy <= CONFIG_CORES_DISABLE);
	FUZZ_CHECK(c->device_lists && c->device_lists < 16);
	FUZZ_CHECK(c->imex_channel_count <= CONFIG_IMEX_MOST);
	FUZZ_CHECK(c->turns_folder[0] == '/');
	for (size_t i = 0; i < c->profile_count; i++)
		FUZZ_CHECK(c->profiles[i].models[0] && c->profiles[i].profiles[0]);
	for (size_t i = 0; i < c->filtered.uuid_count; i++)
		FUZZ_CHECK(c->filtered.uuids[i]);
	for (size_t i = 0; i < c->filtered.index_count; i++)
		FUZZ_CHECK(c->filtered.indexes[i] >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct flags flags = {
		.text = {[FLAG_config_file] = "device", [FLAG_node_name] = "node1"}};
	const uint8_t *end = size ? memchr(bytes, 0, size) : NULL;
	size_t first = end ? (size_t)(end - bytes) : size;
	char *device = malloc(first + 1), *node = malloc(size + 1);
	struct config_files files = {device, end ? node : NULL, first, end ? size - first - 1 : 0};
	struct config *config = NULL;
	struct err err = ERR_NULL;
	int r;

	FUZZ_CHECK(device && node);
	log_set_level(LOG_OFF);
	if (first)
		memcpy(device, bytes, first);
	device[first] = '\0';
	if (end)
		memcpy(node, end + 1, files.node_bytes);
	node[files.node_bytes] = '\0';
	r = config_read(&flags, &files, &config, &err);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && err.text[0] && !config));
	if (r == 0)
		check(config);
	config_free(config);
	free(device);
	free(node);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where an answer of ours is another than the recorded one. */
#include "tests/plugin/differences.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plugin/grant/grant.h"
#include "tests/plugin/answer.h"
#include "tests/plugin/vectors.h"
#include "tests/unit/cmocka_ready.h"

#define PREFERRED \
	"theirs renames devices by the place of the kubelet's ID, so limits change devices"

static const struct row rows[] = {
	/* limits follow devices, not places */
	{BOTH, "alloc-two-gpus-reversed", VARIABLE, "CUDA_DEVICE_MEMORY_LIMIT_0", "5000m",
		"limits are in the order in which programs count devices, which is NVML's"},
	{BOTH, "alloc-two-gpus-reversed", VARIABLE, "CUDA_DEVICE_MEMORY_LIMIT_1", "3000m",
		"the same"},
	{BOTH, "alloc-two-gpus-reversed", VARIABLE, "CUDA_DEVICE_SM_LIMIT", "50",
		"the same: it is that of device 0"},
	{BOTH, "alloc-two-gpus-reversed", VARIABLE, "CUDA_DEVICE_SM_LIMIT_0", "50",
		"theirs has one limit for all; ours has one for each where they differ"},
	{BOTH, "alloc-two-gpus-reversed", VARIABLE, "CUDA_DEVICE_SM_LIMIT_1", "30", "the same"},
	{BOTH, "alloc-same-gpu-twice", VARIABLE, "CUDA_DEVICE_MEMORY_LIMIT_0", "8000m",
		"the container sees one device, and was charged for both parts"},
	{BOTH, "alloc-same-gpu-twice", VARIABLE, "CUDA_DEVICE_MEMORY_LIMIT_1", NULL, "the same"},
	{BOTH, "alloc-same-gpu-twice", VARIABLE, "CUDA_DEVICE_SM_LIMIT", "80", "the same"},
	{BOTH, "c*", VARIABLE, "CUDA_DEVICE_SM_LIMIT_0", "30",
		"theirs has one limit for all; ours has one for each where they differ"},
	{BOTH, "c*", VARIABLE, "CUDA_DEVICE_SM_LIMIT_1", "50", "the same"},
	{BOTH, "cfg-preferred-init", VARIABLE, "NVIDIA_VISIBLE_DEVICES", VECTOR_GPU0, PREFERRED},
	/* what no scheduler can have meant */
	{BOTH, "alloc-unknown-gpu", REFUSED, NULL, "has no device",
		"no such device is on the node"},
	{BOTH, "cfg-preferred-unaligned", REFUSED, NULL, "has no device", "the same"},
	{BOTH, "alloc-mem0", REFUSED, NULL, "no limit", "0m is no limit"},
	{BOTH, "alloc-user-mount-preload", REFUSED, NULL, "of its own at",
		"the kubelet mounts it over what loads the library"},
	/* there HOOK_PATH is a folder of the test's */
	{PARTS, "alloc-user-mount", REFUSED, NULL, "of its own at",
		"the kubelet mounts it over the library and the region"},
	{PARTS, "health-alloc-unhealthy", REFUSED, NULL, "not healthy",
		"the device is not to be handed out"},
	{PARTS, "cfg-nolib", REFUSED, NULL, "not there",
		"the runtime would make folders of these names, and the pod would run without "
		"limits"},
	/* what theirs does not live through */
	{BOTH, "cfg-loglevel-absent", ANSWERED, NULL, "cfg-noconfig",
		"D32: a missing key has a default"},
	{PARTS, "reg-absent-deviceSplitCount", REGISTERS, NULL, "10", "D32"},
	{PARTS, "reg-absent-deviceMemoryScaling", REGISTERS, NULL, "2", "D32"},
	{PARTS, "reg-absent-deviceCoreScaling", REGISTERS, NULL, "2", "D32"},
	{PARTS, "reg-lost", REGISTERS, NULL, "4", "D9: one bad device ends nothing"},
	{PARTS, "reg-resource", REGISTERS, NULL, "4",
		"recorded is the default resource, of which it has none"},
	/* a file that is wrong is said to be */
	{PARTS, "reg-badconfig", CONFIG_REFUSED, NULL, "config.json, line 1",
		"what it would have filtered or scaled would be handed out"},
	{PARTS, "reg-mode-odd", CONFIG_REFUSED, NULL, "operatingmode", "there is no such mode"},
	/* the lock and the search for the pod are before a grant */
	{PARTS, "err-lock-unparsable", NOT_HERE, NULL, NULL, "the lock is not looked at here"},
	{PARTS, "err-lock-gone", NOT_HERE, NULL, NULL, "the same"},
	{PARTS, "err-fallback-phase", NOT_HERE, NULL, NULL, "the pod is not searched for here"},
	{PARTS, "err-fallback-node", NOT_HERE, NULL, NULL, "the same"},
	{PARTS, "err-unscheduled", NOT_HERE, NULL, NULL, "the same"},
	{PROGRAM, "cfg-nolib", NOT_HERE, NULL, NULL, "test_prepare removes the library"},
	{PROGRAM, "cdi-*", NOT_HERE, NULL, NULL,
		"it needs the driver's files, which test_cdi makes"},
	{PROGRAM, "cfg-nohook", NOT_HERE, NULL, NULL,
		"it would write into the root of this machine"},
	{PROGRAM, "health-alloc-unhealthy", NOT_HERE, NULL, NULL,
		"the program learns health later"},
	{PARTS, "cfg-cdi-annotations", NOT_HERE, NULL, NULL,
		"the CDI specification is made of the driver's files, which are missing here"},
	{PARTS, "cfg-cdi-cri", NOT_HERE, NULL, NULL, "the same"},
	{PARTS, "cfg-envvar-cdi-cri", NOT_HERE, NULL, NULL, "the same"},
	/* whom the program serves */
	{PROGRAM, "alloc-fallback-success", REFUSED, NULL, "no pod that waits",
		"D11: without a lock, a pod that was served already is none that waits"},
	{PROGRAM, "err-lock-unparsable", ANSWERED, NULL, "alloc-one",
		"only the lock's time cannot be read; whose it is can, and theirs leaves it "
		"behind"},
	{PROGRAM, "err-lock-gone", ANSWERED, NULL, "alloc-one",
		"a lock whose pod is gone is left over, and the pod that waits has its "
		"reservation"},
	/* the program makes more ready on the host */
	{PROGRAM, "*", MOUNT, "/usr/local/vgpu", "ro",
		"the region in it is a mount of its own, and a second one must not be made beside "
		"it"},
	{PROGRAM, "*", MOUNT, "/tmp/vgpulock", "ro", "our library takes no lock there"},
	{PARTS, "throughput", NOT_HERE, NULL, NULL, "it is a time"},
};
static bool was_needed[ARRAY_SIZE(rows)];
static enum where where_now;

const struct row *differences_find(const char *id, enum difference difference, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t length = strcspn(rows[i].id, "*");

		if (!(rows[i].where & where_now) || rows[i].difference != difference ||
			strncmp(rows[i].id, id, length) != 0 ||
			(!rows[i].id[length] && id[length]) ||
			(name && strcmp(rows[i].name, name) != 0))
			continue;
		was_needed[i] = true;
		return &rows[i];
	}
	return NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Lists with commas are sets. */
static bool is_same_set(const char *a, const char *b)
{
	char word[128];

	if (!a || !b || strlen(a) != strlen(b))
		return is_same(a, b);
	while (*a) {
		size_t length = strcspn(a, ",");

		snprintf(word, sizeof(word), "%.*s", (int)length, a);
		if (!strstr(b, word))
			return false;
		a += length + (a[length] == ',');
	}
	return true;
}

static void compare_variable(
	const char *id, unsigned number, const char *name, const char *ours, const char *theirs)
{
	const struct row *row;

	if (is_same_set(ours, theirs))
		return;
	row = differences_find(id, VARIABLE, name);
	if (!row)
		fail_msg("%s, container %u: %s is %s, theirs %s", id, number, name, ours, theirs);
	if (!is_same(row->value, ours))
		fail_msg("%s, container %u: %s is %s, the table says %s", id, number, name, ours,
			row->value);
}

static void compare_variables(const char *id, unsigned number,
	const V1beta1__ContainerAllocateResponse *ours, const json_t *theirs)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)theirs, name, value) compare_variable(
		id, number, name, answer_env(ours, name), json_string_value(value));
	for (size_t i = 0; i < ours->n_envs; i++)
		if (!json_object_get(theirs, ours->envs[i]->key))
			compare_variable(
				id, number, ours->envs[i]->key, ours->envs[i]->value, NULL);
}

/* Ours besides theirs: the share, the region by itself, and the turns where the node has them. */
static bool is_our_mount(const char *at)
{
	return strstr(at, ".cache") || !strcmp(at, GRANT_SHARE_FOLDER) ||
	       !strncmp(at, GRANT_TURNS_FOLDER, strlen(GRANT_TURNS_FOLDER));
}

static const json_t *their_mount(const json_t *theirs, const char *at)
{
	for (size_t i = 0; i < json_array_size(theirs); i++)
		if (!strcmp(at, vector_text(json_array_get(theirs, i), "container_path")))
			return json_array_get(theirs, i);
	return NULL;
}

static void compare_mount(const char *id, const V1beta1__Mount *ours, const json_t *theirs)
{
	bool is_read_only = json_is_true(json_object_get(theirs, "read_only"));
	const struct row *row;

	if (!is_same(ours->host_path, vector_text(theirs, "host_path")))
		fail_msg("%s: %s is of %s, theirs of %s", id, ours->container_path, ours->host_path,
			vector_text(theirs, "host_path"));
	if (ours->read_only == is_read_only)
		return;
	row = differences_find(id, MOUNT, ours->container_path);
	if (!row || !ours->read_only || strcmp(row->value, "ro") != 0)
		fail_msg("%s: %s is %s, theirs not", id, ours->container_path,
			ours->read_only ? "read-only" : "writable");
}

static void compare_mounts(
	const char *id, const V1beta1__ContainerAllocateResponse *ours, const json_t *theirs)
{
	size_t matched = 0;

	for (size_t i = 0; i < ours->n_mounts; i++) {
		const V1beta1__Mount *mount = ours->mounts[i];
		const json_t *other = their_mount(theirs, mount->container_path);

		if (other)
			compare_mount(id, mount, other);
		else if (!is_our_mount(mount->container_path))
			fail_msg("%s: the mount %s of %s is none of theirs", id,
				mount->container_path, mount->host_path);
		matched += other != NULL;
	}
	if (matched != json_array_size(theirs))
		fail_msg("%s: %zu of their %zu mounts", id, matched, json_array_size(theirs));
}

static void compare_cdi(
	const char *id, const V1beta1__ContainerAllocateResponse *ours, const json_t *theirs)
{
	const json_t *names = json_object_get(theirs, "cdi_devices");
	const json_t *annotations = json_object_get(theirs, "annotations");

	assert_int_equal(ours->n_cdi_devices, json_array_size(names));
	for (size_t i = 0; i < ours->n_cdi_devices; i++)
		assert_string_equal(
			ours->cdi_devices[i]->name, vector_text(json_array_get(names, i), "name"));
	assert_int_equal(ours->n_annotations, json_object_size(annotations));
	for (size_t i = 0; i < ours->n_annotations; i++)
		assert_string_equal(ours->annotations[i]->value,
			vector_text(annotations, ours->annotations[i]->key));
	assert_int_equal(ours->n_devices, json_array_size(json_object_get(theirs, "devices")));
}

void differences_compare(const char *id, unsigned number,
	const V1beta1__ContainerAllocateResponse *ours, const json_t *theirs)
{
	compare_variables(id, number, ours, json_object_get(theirs, "envs"));
	compare_mounts(id, ours, json_object_get(theirs, "mounts"));
	compare_cdi(id, ours, theirs);
}

void differences_begin(enum where where)
{
	where_now = where;
	memset(was_needed, 0, sizeof(was_needed));
}

void differences_end(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!was_needed[i] && rows[i].where & where_now)
			fail_msg("no recording needs the row of %s, %s: %s", rows[i].id,
				rows[i].name ? rows[i].name : "", rows[i].reason);
}

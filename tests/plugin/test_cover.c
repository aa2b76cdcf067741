/* SPDX-License-Identifier: Apache-2.0 */
/* What a container mounts of its own over what its limits are made of. */
#include <stdlib.h>
#include <string.h>

#include "plugin/cluster/pod.h"
#include "plugin/grant/cover.h"
#include "tests/unit/cmocka_ready.h"

static bool covers(json_t *container, const char *hook)
{
	char *path;
	bool result;

	assert_int_equal(cover_find(container, hook, &path), 0);
	result = path;
	free(path);
	json_decref(container);
	return result;
}

static json_t *volume_at(const char *path)
{
	return json_pack(
		"{s:[{s:s},{s:s}]}", "volumeMounts", "mountPath", "/data", "mountPath", path);
}

static void nothing_is_mounted_over_limits(void **state)
{
	static const char *const refused[] = {"/etc/vgpu", "/etc/vgpu/", "/etc/vgpu/share", "/etc",
		"/", "", "etc/vgpu", "//etc///vgpu", "/etc/./vgpu", "/data/../etc/vgpu",
		"/../etc/vgpu", "/etc/ld.so.preload", "/usr/local/vgpu",
		"/usr/local/vgpu/libvgpu.so", "/usr/local/vgpu/x.cache", "/usr/local", "/usr",
		"/run/vgpu-turns", "/run/vgpu-turns/GPU-a/slice", "/run/vgpu-mps"};
	static const char *const free_ones[] = {"/data", "/etc/vgpu2", "/etc/vgp", "/etc/vgpu/../x",
		"/etc/hosts", "/etc/ld.so.cache", "/usr/local/cuda", "/usr/local/vgpus", "/run",
		"/run/vgpu", "/tmp", "/tmp/vgpulock", "/dev/shm", "/...", "/.etc/vgpu"};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (!covers(volume_at(refused[i]), "/usr/local"))
			fail_msg("a volume at '%s'", refused[i]);
	for (size_t i = 0; i < ARRAY_SIZE(free_ones); i++)
		if (covers(volume_at(free_ones[i]), "/usr/local"))
			fail_msg("no volume at '%s'", free_ones[i]);
	assert_true(covers(volume_at("/opt/hook/vgpu/x"), "/opt//hook/"));
	assert_false(covers(volume_at("/usr/local/vgpu"), "/opt/hook"));
	assert_true(covers(
		json_pack("{s:s}", "terminationMessagePath", "/etc/vgpu/share"), "/usr/local"));
	assert_false(covers(json_pack("{s:s}", "terminationMessagePath", "/dev/termination-log"),
		"/usr/local"));
	assert_true(covers(json_pack("{s:[{s:s}]}", "volumeDevices", "devicePath", "/etc/vgpu/x"),
		"/usr/local"));
	assert_false(covers(json_pack("{s:s,s:[n,[],{s:i}]}", "volumeDevices", "x", "volumeMounts",
				    "mountPath", 1),
		"/usr/local"));
}

static void a_pod_says_it_of_its_container(void **state)
{
	const struct pod_resources names = {.slices = "nvidia.com/gpu", .hook = "/usr/local"};
	json_t *pod = json_pack("{s:{s:s,s:s,s:s},s:{s:[{s:s,s:{s:{s:s}},s:[{s:s}]}]}}", "metadata",
		"name", "p", "namespace", "n", "uid", "u", "spec", "containers", "name", "main",
		"resources", "limits", "nvidia.com/gpu", "1", "volumeMounts", "mountPath",
		"/etc/vgpu");
	struct pod *parsed;

	assert_int_equal(pod_parse(pod, &names, &parsed), 0);
	assert_string_equal(parsed->containers[0].covering, "/etc/vgpu");
	pod_free(parsed);
	json_decref(pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_mounted_over_limits),
		cmocka_unit_test(a_pod_says_it_of_its_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A container's id by the text of a process's control groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "node/cgroup.h"

#define ID    "7c2a3c19d9f5cf4d21b6f1f3d64a2fb9b5f2c9f3a0f84b1f7a3c19d9f5cf4d21"
#define OTHER "ffff3c19d9f5cf4d21b6f1f3d64a2fb9b5f2c9f3a0f84b1f7a3c19d9f5cf4d21"

static void runtimes_groups_are_read(void **state)
{
	static const char *const texts[] = {
		"0::/system.slice/docker-" ID ".scope\n",
		"0::/docker/" ID "\n",
		"0::/default/" ID "\n",
		"0::/machine.slice/libpod-" ID ".scope/container\n",
		"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n",
		"0::/system.slice/nerdctl-" ID ".scope",
		"0::/kubepods.slice/kubepods-pod0f1e.slice/cri-containerd-" ID ".scope\n",
		"4:memory:/kubepods/burstable/pod0f1e/" ID "\n1:name=systemd:/\n0::/\n",
		"0::/../../pod0f1e/" ID "\n",
	};
	char id[CGROUP_ID_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!cgroup_parse_id(texts[i], id))
			fail_msg("no container in %s", texts[i]);
		assert_string_equal(id, "7c2a3c19d9f5");
	}
}

/* Below its own group a container may make groups of any name. */
static void a_container_chooses_no_id(void **state)
{
	char id[CGROUP_ID_BYTES];

	assert_true(cgroup_parse_id("0::/docker/" ID "/docker/" OTHER "\n", id));
	assert_string_equal(id, "7c2a3c19d9f5");
	assert_true(cgroup_parse_id("0::/system.slice/docker-" ID ".scope/" OTHER "\n", id));
	assert_string_equal(id, "7c2a3c19d9f5");
	assert_false(cgroup_parse_id("4:memory:/docker/" ID "\n3:cpu:/docker/" OTHER "\n", id));
}

static void what_is_no_id_is_none(void **state)
{
	static const char *const texts[] = {
		"",
		"0::/\n",
		"0::/user.slice/user-1000.slice/session-3.scope\n",
		"0::/system.slice/docker-7c2a3c19d9f5.scope\n",
		"0::/docker/0" ID "\n",
		"0::/docker/x" ID "\n",
		"0::/docker/" ID "-init.scope\n",
		"0::/docker/7C2A3c19d9f5cf4d21b6f1f3d64a2fb9b5f2c9f3a0f84b1f7a3c19d9f5cf4d21\n",
		"4:memory\n/docker/" ID "\n",
	};
	char id[CGROUP_ID_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (cgroup_parse_id(texts[i], id))
			fail_msg("a container in %s", texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runtimes_groups_are_read),
		cmocka_unit_test(a_container_chooses_no_id),
		cmocka_unit_test(what_is_no_id_is_none),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu run --sim: devices by name, and a quota that holds, on the simulated node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/share.h"
#include "tests/cli/tool.h"

static int set_up(void **state)
{
	int r = tool_set_up(state);

	unsetenv("VGPU_LIBDIR");
	unsetenv("LD_LIBRARY_PATH");
	setenv("VGPU_SIM_STATE", tool_path("machine"), 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	return r;
}

static void read_share(const char *text, struct share *ret_share)
{
	struct share_fault fault;

	assert_int_equal(share_parse(text, strlen(text), ret_share, &fault), 0);
}

static void a_slice_has_all_devices_where_none_is_chosen(void **state)
{
	struct share share;

	read_share(tool_run("\"$VGPU\" run --sim --memory 1g -- sh -c 'cat \"$VGPU_SHARE\"; "
			    "test -z \"$CUDA_VISIBLE_DEVICES\"'")
			   ->out,
		&share);
	assert_int_equal(share.device_count, 2);
	assert_int_equal(strncmp(share.devices[0].uuid, "GPU-", 4), 0);
}

static void chosen_devices_are_granted_and_visible_in_their_order(void **state)
{
	struct share share, all;
	const struct said *said;
	char expected[256];

	read_share(tool_run("\"$VGPU\" run --sim --memory 1g -- sh -c 'cat \"$VGPU_SHARE\"'")->out,
		&all);
	said = tool_run("\"$VGPU\" run --sim --memory 1g --device 1 --device %.12s -- "
			"sh -c 'cat \"$VGPU_SHARE\"; echo \"$CUDA_VISIBLE_DEVICES\" >&2'",
		all.devices[0].uuid);
	read_share(said->out, &share);
	assert_int_equal(share.device_count, 2);
	assert_string_equal(share.devices[0].uuid, all.devices[1].uuid);
	assert_string_equal(share.devices[1].uuid, all.devices[0].uuid);
	snprintf(expected, sizeof(expected), "%s,%s\n", all.devices[1].uuid, all.devices[0].uuid);
	assert_string_equal(said->err, expected);
}

static void a_device_that_is_not_here_is_refused_with_those_that_are(void **state)
{
	static const char *const devices[] = {"2", "GPU-", "GPU-0", "0x0", "-1", "''"};
	const struct said *said;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		said = tool_run(
			"\"$VGPU\" run --sim --memory 1g --device %s -- echo ran", devices[i]);
		assert_int_equal(said->status, 1);
		assert_says(said->err, "this machine has 0 GPU-");
		assert_string_equal(said->out, "");
	}
	said = tool_run("\"$VGPU\" run --sim --memory 1g --device 0 --device 0 -- echo ran");
	assert_says(said->err, "named twice");
}

static void a_tenant_is_refused_where_its_slice_ends(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" run --sim --memory 2g -- \"$TENANT\"");

	assert_int_equal(said->status, 0);
	assert_string_equal(said->err, "");
	assert_says(said->out, "NVIDIA H200, 2.00 GiB");
	assert_says(said->out, "took 5 x 256 MiB = 1.25 GiB; the next: CUDA_ERROR_OUT_OF_MEMORY");
	assert_says(said->out, "took 3 again; the next: CUDA_ERROR_OUT_OF_MEMORY");
	assert_says(said->out, "20 kernels of 2 ms: ");
}

static void a_running_slice_shows_what_it_holds_on_which_device(void **state)
{
	const struct said *said =
		tool_run("\"$VGPU\" run --sim --memory 2g --device 0 --name busy -- \"$TENANT\" "
			 "--hold 60000 "
			 ">\"$HERE/tenant\" & tries=0\n"
			 "until grep -q holding \"$HERE/tenant\" || [ $tries = 200 ]; do "
			 "sleep 0.02; tries=$((tries + 1)); done\n"
			 "\"$VGPU\" list --sim | tr -s ' '; kill $!; wait");

	assert_string_equal(said->out, "SLICE DEVICE PROCESSES USED QUOTA % HOLDS\n"
				       "busy 0 H200 1 1.8G 2G 88 context 518M plain 1.2G\n");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slice_has_all_devices_where_none_is_chosen),
		cmocka_unit_test(chosen_devices_are_granted_and_visible_in_their_order),
		cmocka_unit_test(a_device_that_is_not_here_is_refused_with_those_that_are),
		cmocka_unit_test(a_tenant_is_refused_where_its_slice_ends),
		cmocka_unit_test(a_running_slice_shows_what_it_holds_on_which_device),
	};

	return cmocka_run_group_tests(tests, set_up, tool_tear_down);
}

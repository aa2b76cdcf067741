/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated daemon of the Multi-Process Service, and who is its client. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/machine.h"
#include "sim/tests/nvml/scratch.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"

#define MiB	 1048576ull
#define OK(call) assert_int_equal(call, NVML_SUCCESS)
#define WAIT_NS	 UINT64_C(10000000000)

static char output[1024];

/* Runs the control program with this input; returns its exit status. */
static int control(const char *options, const char *input)
{
	char line[8192];
	FILE *pipe;
	size_t n;

	snprintf(line, sizeof(line), "printf '%s' | timeout 20 '%s' %s 2>&1", input,
		getenv("MPS_CONTROL"), options);
	pipe = popen(line, "r");
	assert_non_null(pipe);
	n = fread(output, 1, sizeof(output) - 1, pipe);
	output[n] = '\0';
	return pclose(pipe);
}

static int begin(void **state)
{
	(void)state;
	scratch_begin("h200x2");
	setenv("CUDA_MPS_PIPE_DIRECTORY", scratch_path("."), 1);
	return nvmlInit_v2() == NVML_SUCCESS ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	control("", "quit\\n");
	nvmlShutdown();
	scratch_end();
	return 0;
}

/* How many processes of the device are clients. */
static unsigned int count_clients(void)
{
	nvmlProcessInfo_t infos[8];
	nvmlDevice_t device;
	unsigned int count = 8;

	OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
	OK(nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &count, infos));
	return count;
}

static void who_starts_under_a_daemon_is_its_client(void **state)
{
	struct holder before, client;

	(void)state;
	before = holder_start("before", 0, 1, 0);
	assert_int_equal(control("-d", ""), 0);
	client = holder_start("client", 0, 1, 0);
	assert_int_equal(count_clients(), 1);
	holder_end(&client);
	holder_end(&before);
}

static void the_daemon_tells_its_servers_and_quits(void **state)
{
	(void)state;
	assert_int_not_equal(control("", "get_server_list\\n"), 0);
	assert_int_equal(control("-d", ""), 0);
	assert_int_not_equal(control("-d", ""), 0);
	assert_int_equal(control("", "get_server_list\\n"), 0);
	assert_true(atoi(output) > 1 && kill(atoi(output), 0) == 0);
	assert_int_equal(control("", "get_server_list\\nquit\\n"), 0);
	assert_int_not_equal(access(scratch_path("control"), F_OK), 0);
	assert_int_not_equal(control("", "quit\\n"), 0);
}

static void a_daemon_that_was_killed_has_no_clients(void **state)
{
	uint64_t until = machine_now_ns() + WAIT_NS;
	struct holder holder;
	int pid;

	(void)state;
	assert_int_equal(control("-d", ""), 0);
	assert_int_equal(control("", "get_server_list\\n"), 0);
	pid = atoi(output);
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (control("", "get_server_list\\n") == 0)
		assert_true(machine_now_ns() < until);
	holder = holder_start("none", 0, 1, 0);
	assert_int_equal(count_clients(), 0);
	holder_end(&holder);
	/* Another daemon takes the place. */
	assert_int_equal(control("-d", ""), 0);
	assert_int_equal(access(scratch_path("control"), F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_starts_under_a_daemon_is_its_client),
		TEST(the_daemon_tells_its_servers_and_quits),
		TEST(a_daemon_that_was_killed_has_no_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

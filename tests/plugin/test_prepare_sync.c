/* SPDX-License-Identifier: Apache-2.0 */
/* What of a container's files is on the disk before the kubelet is answered. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "prepare_host.h"
#include "tests/unit/cmocka_ready.h"

static struct host host;
static char synced[1024]; /* names of what was waited for, each with a space */

int fsync(int fd)
{
	char link[64], path[512];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	snprintf(synced + strlen(synced), sizeof(synced) - strlen(synced), "%s ",
		strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	return (int)syscall(SYS_fsync, fd);
}

static int setup(void **state)
{
	host_make(&host);
	return 0;
}

static int teardown(void **state)
{
	host_remove(&host);
	return 0;
}

static void prepare(void)
{
	struct share share = host_share(&host, POD, "main");
	struct prepare_request request = {POD, "main", &share};
	struct prepared prepared;
	struct err err = ERR_NULL;

	if (prepare_container(&host.settings, &request, &prepared, &err) < 0)
		fail_msg("%s", err.text);
}

/* Each wait for the disk is one of the kubelet's: only for what the rest can be made from, and the share. */
static void the_disk_is_waited_for_four_times(void **state)
{
	synced[0] = '\0';
	prepare();
	assert_string_equal(synced, "." POD "_main.json.new .share.new " POD "_main containers ");
	synced[0] = '\0';
	prepare();
	assert_string_equal(synced, "containers ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_disk_is_waited_for_four_times, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

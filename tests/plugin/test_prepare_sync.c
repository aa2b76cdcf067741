/* SPDX-License-Identifier: Apache-2.0 */
/* What of a container's files is on the disk before the kubelet is answered. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "prepare_host.h"
#include "tests/unit/cmocka_ready.h"

#define WAIT_MS 5000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char synced[8][128]; /* names of what was waited for */
static unsigned count;
static bool is_held; /* nothing comes to the disk */
static int failure;

static void enter(int fd)
{
	char link[64], path[512];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	assert_true(count < ARRAY_SIZE(synced));
	snprintf(synced[count++], sizeof(synced[0]), "%.127s",
		strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

static bool is_let_through(void)
{
	bool is_let;

	pthread_mutex_lock(&lock);
	is_let = !is_held;
	pthread_mutex_unlock(&lock);
	return is_let;
}

int fsync(int fd)
{
	pthread_mutex_lock(&lock);
	enter(fd);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < WAIT_MS && !is_let_through(); i++)
		usleep(1000);
	if (failure)
		errno = failure;
	return failure ? -1 : (int)syscall(SYS_fsync, fd);
}

static void assert_synced(const char *const *names, unsigned wanted)
{
	assert_int_equal(count, wanted);
	for (unsigned i = 0; i < wanted; i++) {
		bool is_there = false;

		for (unsigned j = 0; j < count; j++)
			is_there |= !strcmp(synced[j], names[i]);
		if (!is_there)
			fail_msg("%s is not waited for", names[i]);
	}
}

static int prepare(uint64_t memory_bytes, struct flush *flush)
{
	struct share share = host_share(POD, "main");
	struct prepare_request request = {
		.pod_uid = POD, .container = "main", .share = &share, .flush = flush};
	struct prepared prepared;
	struct err err = ERR_NULL;

	share.devices[0].memory_bytes = memory_bytes;
	count = 0;
	return prepare_container(&host.settings, &request, &prepared, &err);
}

static const char *const all[] = {POD "_main.json", "containers", "share", POD "_main", "shares"};

/* Each wait for the disk is one of the kubelet's: only for what the rest can be made from, and the share. */
static void the_disk_is_waited_for(void **state)
{
	assert_int_equal(prepare(1u << 30, NULL), 0);
	assert_synced(all, 5);
	/* the one before may not have come to wait */
	assert_int_equal(prepare(1u << 30, NULL), 0);
	assert_synced(all, 5);
}

/* The old content is there until the new one is. */
static void what_is_replaced_is_on_the_disk_before(void **state)
{
	static const char *const new[] = {
		"." POD "_main.json.new", ".share.new", "containers", POD "_main", "shares"};

	assert_int_equal(prepare(2u << 30, NULL), 0);
	assert_synced(new, 5);
}

static void who_asks_for_it_waits_later(void **state)
{
	struct flush flush = {.result = 0};

	is_held = true;
	assert_int_equal(prepare(2u << 30, &flush), 0);
	pthread_mutex_lock(&lock);
	is_held = false;
	pthread_mutex_unlock(&lock);
	assert_int_equal(flush_wait(&flush), 0);
	assert_synced(all, 5);
}

static void a_disk_that_fails_is_said(void **state)
{
	struct flush flush = {.result = 0};

	failure = EIO;
	assert_int_equal(prepare(2u << 30, NULL), -EIO);
	assert_int_equal(prepare(2u << 30, &flush), 0);
	assert_int_equal(flush_wait(&flush), -EIO);
	failure = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_disk_is_waited_for),
		cmocka_unit_test(what_is_replaced_is_on_the_disk_before),
		cmocka_unit_test(who_asks_for_it_waits_later),
		cmocka_unit_test(a_disk_that_fails_is_said),
	};

	return cmocka_run_group_tests(tests, host_setup, host_teardown);
}

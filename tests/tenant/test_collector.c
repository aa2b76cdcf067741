/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of the library's own that charges what no call of the program's does: when it is there, and what it is to the program. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "region/layout.h"
#include "tests/tenant/meter.h"

#define MS	UINT64_C(1000000)
#define SOON_US 500000
#define IDLE_US 3000000
#define FORCE	"GPU_CORE_UTILIZATION_POLICY=force"
#define COUNT	20

static struct tenant *begin(struct slice *slice)
{
	struct tenant *t = tenant_start(slice->node, slice, "linked", FORCE, NULL);

	expect(t, OK, "primary 0");
	return t;
}

/* Reads the file of the process's thread; false: there is none. */
static bool read_of_thread(
	const struct tenant *t, const char *tid, const char *name, char text[4096])
{
	char path[128];
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", t->pid, tid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, 4095, file);
	text[length] = '\0';
	fclose(file);
	return length > 0;
}

/* How many threads of that name it has; the last one's status, where ret_status is not NULL. */
static unsigned own_threads(const struct tenant *t, char ret_status[4096])
{
	char path[64], text[4096];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!read_of_thread(t, entry->d_name, "comm", text) || strcmp(text, "vgpu\n") != 0)
			continue;
		count++;
		if (ret_status)
			assert_true(read_of_thread(t, entry->d_name, "status", ret_status));
	}
	closedir(dir);
	return count;
}

static void work_of_a_process_that_calls_no_more_is_charged(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 50 cap 50");
	struct tenant *t = begin(slice);

	expect(t, OK, "compute launch 300000 count=1 leave");
	usleep(SOON_US);
	assert_in_range(meter_books(slice)->busy_ns, 300 * MS, 310 * MS);
}

/* Whoever is suspended or looks on has no more to charge than before. */
static void it_is_there_while_there_is_work_to_charge(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 50 cap 50");
	struct tenant *t = begin(slice);

	assert_int_equal(own_threads(t, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		expect(t, OK, "compute launch 1000 count=1 leave");
		assert_int_equal(own_threads(t, NULL), 1);
		usleep(IDLE_US);
		assert_int_equal(own_threads(t, NULL), 0);
	}
}

static void work_that_is_not_metered_has_none(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = begin(slice);

	expect(t, OK, "compute launch 300000 count=1 leave");
	usleep(SOON_US);
	assert_int_equal(own_threads(t, NULL), 0);
}

/* All but those by which the C library asks its own threads for something. */
static void the_programs_signals_are_not_for_it(void **state)
{
	const int taken[] = {SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD, SIGPROF};
	struct slice *slice = meter_slice(*state, "a", "", "cores 50 cap 50");
	struct tenant *t = begin(slice);
	unsigned long long blocked;
	char status[4096], *line;

	expect(t, OK, "compute launch 300000 count=1 leave");
	assert_int_equal(own_threads(t, status), 1);
	line = strstr(status, "SigBlk:");
	assert_non_null(line);
	blocked = strtoull(line + strlen("SigBlk:"), NULL, 16);
	for (unsigned i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		assert_true(blocked >> (taken[i] - 1) & 1);
}

/* The thread looks while the process ends, at whichever moment that is. */
static void a_process_ends_as_without_it(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 50 cap 50");

	for (unsigned i = 0; i < COUNT; i++) {
		struct tenant *t = begin(slice);

		expect(t, OK, "compute launch 200000 count=1 leave");
		usleep(60000 - 200 * COUNT / 2 + 200 * i);
		assert_int_equal(tenant_end(t), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			work_of_a_process_that_calls_no_more_is_charged, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(
			it_is_there_while_there_is_work_to_charge, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(
			work_that_is_not_metered_has_none, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(
			the_programs_signals_are_not_for_it, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(
			a_process_ends_as_without_it, node_setup, node_teardown),
	};

	return cmocka_run_group_tests_name("collector", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Older drivers: lists by the host's PIDs, and functions that are not there. */
#include "tests/tenant/scene.h"

#include <stdio.h>
#include <string.h>

#include "region/snapshot.h"

struct search {
	uint32_t pid, host_pid;
};

static void search_visit(const struct snapshot_member *m, void *argument)
{
	struct search *s = argument;

	if (m->pid == s->pid)
		s->host_pid = m->host_pid;
}

/* The PID by which an older driver lists the tenant, as the region has it; 0: not known. */
static uint32_t host_pid_of(const struct tenant *t)
{
	struct search s = {.pid = (uint32_t)t->pid};

	assert_int_equal(snapshot_visit(t->slice->region, NULL, search_visit, &s), 0);
	return s.host_pid;
}

static void an_older_drivers_pids_are_found_and_shown_as_the_slices_own(void **state)
{
	struct scene s = make_scene(*state, "VGPU_SIM_NVML=host-pids,accounting,sessions");

	assert_int_not_equal(host_pid_of(s.one), 0);
	assert_int_not_equal(host_pid_of(s.one), s.one->pid);
	assert_int_not_equal(host_pid_of(s.two), 0);
	assert_int_not_equal(host_pid_of(s.two), host_pid_of(s.one));
	expect(s.looker, OK, "list %s 0 8", compute_lists[2]);
	check_rows(&s);
	make_busy(&s);
	expect(s.looker, OK, "samples 0 100");
	assert_true(shows(s.looker, " count=1 info=0:1 %d:", s.one->pid));
	expect(s.looker, OK, "accounts 0 8");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	expect(s.looker, OK, "sessions 0 8");
	assert_true(shows(s.looker, " %d:", s.one->pid) && shows(s.looker, " c%d:", s.two->pid));
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	expect(s.looker, OK, "account 0 %d", s.one->pid);
	expect(s.looker, NOT_FOUND, "account 0 %d", host_pid_of(s.other));
	/* what no call announces is found by the figure under that PID: streams */
	s.a->slack_bytes = 0;
	for (unsigned i = 0; i < 8; i++)
		expect(s.one, OK, "stream s%u", i);
	expect(s.one, OUT_OF_MEMORY, "alloc y 4g");
	assert_true(slice_books(s.a, 0) >= slice_truth(s.a, 0));
	assert_true(slice_books(s.a, 0) < slice_truth(s.a, 0) + MIB);
}

static void two_that_begin_at_once_take_nobody_elses_figure(void **state)
{
	struct node *node = *state;
	struct slice *slices[2] = {
		slice_new(node, "a", "4g", NULL), slice_new(node, "b", "4g", NULL)};
	struct tenant *t[8];
	uint32_t pids[8];

	for (unsigned i = 0; i < 8; i++)
		t[i] = tenant_start(node, slices[i % 2], "linked", "VGPU_SIM_NVML=host-pids", NULL);
	for (unsigned i = 0; i < 8; i++)
		tenant_tell(t[i], "primary 0");
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(tenant_answer(t[i]), OK);
	for (unsigned i = 0; i < 8; i++) {
		pids[i] = host_pid_of(t[i]);
		/* the simulated driver makes up a PID that ends like the real one */
		assert_true(pids[i] == 0 || (pids[i] & 0x3fffff) == (uint32_t)t[i]->pid);
		expect(t[i], OK, "alloc x 10m");
	}
	/* whether they were found or not, the books know them */
	for (unsigned i = 0; i < 2; i++) {
		assert_true(slice_books(slices[i], 0) >= slice_truth(slices[i], 0));
		expect(t[i], OK, "list %s 0 8", compute_lists[2]);
		assert_int_equal(tenant_number(t[i], "count"), 4);
	}
}

static void a_child_of_fork_is_listed_by_itself(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", "VGPU_SIM_NVML=host-pids", NULL);
	uint32_t child;

	expect(t, OK, "fork");
	child = (uint32_t)tenant_number(t, "pid");
	expect(t, OK, "primary 0");
	expect(t, OK, "list %s 0 8", compute_lists[1]);
	assert_int_equal(tenant_number(t, "count"), 1);
	assert_true(shows(t, " %u:%llu:", child, (unsigned long long)CONTEXT_BYTES));
	expect(t, OK, "exit 0");
	expect(t, OK, "primary 0");
	expect(t, OK, "list %s 0 8", compute_lists[1]);
	assert_true(shows(t, " count=1 %d:", t->pid));
}

/* The folder of an NVML that has the oldest lists alone. */
static const char *old_nvml(void)
{
	static char folder[600];

	snprintf(folder, sizeof(folder), "%s", node_program("old_nvml/libnvidia-ml.so.1"));
	*strrchr(folder, '/') = '\0';
	return folder;
}

static void what_the_driver_lacks_stays_absent(void **state)
{
	static const char *const absent[] = {"nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses_v3",
		"nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetRunningProcessDetailList",
		"nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo",
		"nvmlDeviceGetAccountingPids", "nvmlDeviceGetBAR1MemoryInfo",
		"nvmlDeviceGetMemoryInfo_v2", "nvmlSystemGetProcessName"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t, *looker;

	node->driver = old_nvml();
	t = tenant_new(slice);
	looker = tenant_start(node, slice, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice", NULL);
	for (unsigned i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		expect(looker, OK, "has %s", absent[i]);
		assert_int_equal(tenant_number(looker, "has"), 0);
	}
	expect(looker, OK, "has %s", compute_lists[0]);
	assert_int_equal(tenant_number(looker, "has"), 1);
	/* what is there works, and what we ask for ourselves is asked in the oldest form */
	expect(t, OK, "alloc x 100m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 100 * MIB);
	expect(looker, OK, "list %s 0 8", compute_lists[0]);
	assert_int_equal(tenant_number(looker, "count"), 1);
	assert_true(
		shows(looker, " %d:%llu", t->pid, (unsigned long long)(CONTEXT_BYTES + 100 * MIB)));
	/* nobody tells how busy processes are: the device's own figure */
	expect(looker, OK, "busy 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(an_older_drivers_pids_are_found_and_shown_as_the_slices_own),
		test_with_node(two_that_begin_at_once_take_nobody_elses_figure),
		test_with_node(a_child_of_fork_is_listed_by_itself),
		test_with_node(what_the_driver_lacks_stays_absent),
	};

	return cmocka_run_group_tests_name("older", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that end with work that they have not waited for. A slice whose processes were all killed, and whose next one begins
 * as much later as a kubelet takes, is charged until the slice was told to have no process, which the device plugin does within a
 * quarter of a second.
 *
 * The test and its tenants have an /etc of their own, mounted once: a process that mounts waits in the kernel, and the virtual
 * clock takes that for a wait for time.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "region/ended.h"
#include "region/layout.h"
#include "tests/tenant/meter.h"

#define MS	  UINT64_C(1000000)
#define UNTOLD_US 250000   /* the most that the plugin takes */
#define PAUSE_US  10000000 /* until the kubelet starts a container again */
#define FORCE	  "GPU_CORE_UTILIZATION_POLICY=force"

struct pod {
	struct node *node;
	struct slice *slice;
	struct tenant *tenant;
};

#define SHARE "/etc/vgpu/share"
#define ENDED "/etc/vgpu/" ENDED_FILE

static bool has_etc;

static bool enter_etc(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/etc", "tmpfs", 0, NULL) == 0 && mkdir("/etc/vgpu", 0755) == 0;
}

static void put(const char *path, const char *text)
{
	FILE *file;

	unlink(path);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fchmod(fileno(file), 0444) == 0);
	assert_int_equal(fclose(file), 0);
}

static struct pod pod_of(struct node *node, const char *lines, const char *terms)
{
	struct pod pod = {.node = node, .slice = meter_slice(node, "a", lines, terms)};
	char text[600];

	if (!has_etc) {
		print_message("skipped: no right to mount an /etc of its own here\n");
		skip();
	}
	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\n%sdevice %s memory 16g %s\nend\n",
		pod.slice->region, lines, node->uuid[0], terms);
	unlink(ENDED);
	put(SHARE, text);
	return pod;
}

static void begin(struct pod *pod, const char *work)
{
	pod->tenant = tenant_start(pod->node, pod->slice, "linked", FORCE, NULL);
	expect(pod->tenant, OK, "primary 0");
	tenant_tell(pod->tenant, "%s", work);
}

static void tell_end(const struct pod *pod)
{
	struct file_identity id;
	char text[ENDED_BYTES];

	assert_int_equal(file_identify_path(pod->slice->region, &id), 0);
	assert_int_equal(ended_format(clock_now_ns(), id.device, id.inode, text), 0);
	put(ENDED, text);
}

static bool is_busy(const struct pod *pod)
{
	const struct region_file *file = meter_region(pod->slice);

	for (unsigned i = 0; i < file->own.slot_high; i++)
		if (file->own.slots[i].busy_since_ns[0])
			return true;
	return false;
}

/* With work under way, as a process is killed that works all the time. */
static void die(struct pod *pod, bool is_told)
{
	for (unsigned i = 0; !is_busy(pod) && i < 10000; i++)
		usleep(100);
	assert_true(is_busy(pod));
	tenant_kill(pod->tenant, SIGKILL);
	usleep(UNTOLD_US);
	if (is_told)
		tell_end(pod);
	usleep(PAUSE_US);
}

static unsigned share_of(struct pod *pod, unsigned window_us)
{
	unsigned permille = meter_permille(pod->slice, 0, window_us);

	print_message("%u permille\n", permille);
	return permille;
}

static uint64_t charged_ns(const struct pod *pod)
{
	return meter_books(pod->slice)->busy_ns;
}

static void a_slice_whose_end_is_told_has_its_share_when_it_begins_again(void **state)
{
	struct pod pod = pod_of(*state, "", "cores 10 cap 10");

	begin(&pod, "compute launch 1000");
	usleep(METER_WINDOW_US);
	die(&pod, true);
	begin(&pod, "compute launch 1000");
	assert_in_range(share_of(&pod, 1000000), 90, 130);
}

/* Nobody knows whether its work went on. */
static void a_slice_whose_end_nobody_tells_pays_for_all_of_the_pause(void **state)
{
	struct pod pod = pod_of(*state, "", "cores 10 cap 10");

	begin(&pod, "compute launch 1000");
	usleep(METER_WINDOW_US);
	/* of a process before */
	tell_end(&pod);
	usleep(METER_WINDOW_US);
	die(&pod, false);
	begin(&pod, "compute launch 1000");
	assert_int_equal(share_of(&pod, 3000000), 0);
}

static void who_dies_with_a_long_kernel_under_way_pays_for_it(void **state)
{
	struct pod pod = pod_of(*state, "", "cores 10 cap 10");

	begin(&pod, "compute launch 30000000 count=1");
	usleep(3010000); /* not at the moment of a look, which may have charged what it does not say yet */
	die(&pod, true);
	begin(&pod, "compute launch 1000");
	usleep(METER_POLL_US);
	assert_in_range(charged_ns(&pod), 3010 * MS, 3310 * MS);
	/* 3.25 s, of which 1.3 have grown meanwhile */
	assert_int_equal(share_of(&pod, 3000000), 0);
}

/* What ran on beside others' turns is owed to them, and paid while the kubelet waits. */
static void a_slice_that_begins_again_beside_another_has_its_turns(void **state)
{
	struct node *node = *state;
	struct slice *other;
	struct tenant *tenant;
	struct pod pod;
	char lines[200];

	snprintf(lines, sizeof(lines), "turns %s/turns\n", node->dir);
	other = meter_slice(node, "b", lines, "cores 50");
	unlink(SHARE);
	tenant = meter_start(other, "linked", 0, FORCE, "compute launch 500");
	assert_int_equal(tenant_answer(tenant), OK); /* it has its share */
	pod = pod_of(node, lines, "cores 50");
	begin(&pod, "compute launch 500");
	usleep(METER_WINDOW_US);
	die(&pod, true);
	begin(&pod, "compute launch 500");
	assert_in_range(share_of(&pod, 3000000), 450, 510);
}

/* One of a slice, with a context, that has given 5 ms of work, which was done long ago, and has not asked. */
static struct tenant *begin_one_that_leaves(struct slice *slice)
{
	struct tenant *t = tenant_start(slice->node, slice, "linked", FORCE, NULL);

	expect(t, OK, "primary 0");
	expect(t, OK, "compute launch 5000 count=1 leave");
	usleep(2000000);
	return t;
}

static void who_ends_without_having_waited_pays_for_his_work_alone(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 10 cap 10");
	uint64_t before_ns;

	unlink(SHARE);
	tenant_end(begin_one_that_leaves(slice));
	usleep(1000000);
	before_ns = meter_books(slice)->busy_ns;
	assert_in_range(before_ns, 4 * MS, 6 * MS);
	tenant_end(meter_start(slice, "linked", 0, FORCE, "compute launch 500 count=1"));
	assert_in_range(meter_books(slice)->busy_ns - before_ns, 0, 2 * MS);
}

/* What it had under way is charged until the others see that it is dead, not until the next one begins. */
static void one_of_a_slice_that_is_killed_is_charged_by_those_who_work_on(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 50 cap 50");
	struct tenant *other,
		*works = meter_start(slice, "linked", 0, FORCE, "compute launch 1000");

	other = begin_one_that_leaves(slice);
	tenant_kill(other, SIGKILL);
	/* what it is charged, 2.2 s, is paid in 4.4 */
	usleep(6000000);
	other = tenant_start(slice->node, slice, "linked", FORCE, NULL);
	expect(other, OK, "primary 0");
	assert_in_range(meter_permille(slice, 0, METER_WINDOW_US), 450, 550);
	tenant_end(other);
	tenant_kill(works, SIGKILL);
}

/* It has never asked for a device. */
static void a_child_of_fork_that_ends_is_no_process_of_the_slice(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 10 cap 10");
	struct tenant *t;

	unlink(SHARE);
	t = begin_one_that_leaves(slice);
	expect(t, OK, "fork");
	expect(t, 3 << 8, "exit 3");
	assert_int_equal(meter_region(slice)->own.slot_high, 1);
	tenant_end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_slice_whose_end_is_told_has_its_share_when_it_begins_again),
		test_with_node(a_slice_whose_end_nobody_tells_pays_for_all_of_the_pause),
		test_with_node(who_dies_with_a_long_kernel_under_way_pays_for_it),
		test_with_node(a_slice_that_begins_again_beside_another_has_its_turns),
		test_with_node(who_ends_without_having_waited_pays_for_his_work_alone),
		test_with_node(a_child_of_fork_that_ends_is_no_process_of_the_slice),
		test_with_node(one_of_a_slice_that_is_killed_is_charged_by_those_who_work_on),
	};

	has_etc = enter_etc();
	return cmocka_run_group_tests_name("ends", tests, NULL, NULL);
}

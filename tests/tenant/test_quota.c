/* SPDX-License-Identifier: Apache-2.0 */
/* The quota: among threads and processes, from the environment and the files, while it changes. */
#include "tests/tenant/tenant.h"

#include <stddef.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region/layout.h"

/* A changed share file is in force within so long. */
#define CHANGE_US 100000

static void refusal_is_out_of_memory_and_a_smaller_block_still_fits(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "alloc a 508m");
	expect(t, OK, "alloc a 506m");
	assert_int_equal(slice_agreed(slice, 0), GIB);
	expect(t, OUT_OF_MEMORY, "alloc b 1");
	expect(t, OUT_OF_MEMORY, "pitch b 1 1");
	expect(t, OUT_OF_MEMORY, "managed b 1");
	expect(t, OUT_OF_MEMORY, "async b 1");
	expect(t, OUT_OF_MEMORY, "create b 2m");
	expect(t, OUT_OF_MEMORY, "newctx b 0");
	assert_int_equal(slice_agreed(slice, 0), GIB);
	expect(t, OK, "free a");
	expect(t, OK, "alloc a 4k");
	assert_int_equal(tenant_end(t), 0);
}

static void absurd_sizes_are_refused_like_any_other(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "alloc a 17592186044416");
	expect(t, OUT_OF_MEMORY, "alloc a 0xffffffffffffffff");
	expect(t, OUT_OF_MEMORY, "alloc a 0xfffffffffff00000");
	expect(t, OUT_OF_MEMORY, "async a 4398046511104");
	expect(t, INVALID_VALUE, "alloc a 0");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void a_quota_too_small_for_a_context_refuses_the_context(void **state)
{
	struct slice *slice = slice_new(*state, "a", "500m", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	expect(t, OUT_OF_MEMORY, "primary 0");
	assert_int_equal(slice_truth(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void threads_together_stay_below_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "threads 8 300 128m");
	assert_int_equal(tenant_number(t, "other"), 0);
	assert_true(tenant_number(t, "done") > 0);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	expect(t, OK, "threads 8 20 32m keep");
	assert_int_equal(tenant_number(t, "done"), 15);
	assert_int_equal(tenant_number(t, "refused"), 145);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 480 * MIB);
	expect(t, OK, "drop");
	expect(t, OK, "threads 8 500 1000");
	assert_int_equal(tenant_number(t, "done"), 4000);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

/* PARTIES ask for 600 MiB each at the same instant, where there is room for one. */
static void race(struct node *node, unsigned parties, unsigned rounds)
{
	char zero[4096] = {0}, quota[32], path[400];
	struct tenant *t[8];
	struct slice *slice;
	unsigned won[8] = {0};

	snprintf(quota, sizeof(quota), "%lum", (unsigned long)(parties * 518 + 1024));
	slice = slice_new(node, "a", quota, NULL);
	snprintf(path, sizeof(path), "%s", node_file(node, "race", zero, sizeof(zero)));
	for (unsigned i = 0; i < parties; i++)
		t[i] = tenant_new(slice);
	for (unsigned i = 0; i < parties; i++)
		tenant_tell(t[i], "race %s %u %u %u 600m", path, i, parties, rounds);
	for (unsigned i = 0; i < parties; i++)
		assert_int_equal(tenant_answer(t[i]), OK);
	assert_true(sscanf(t[0]->answer, " %u %u %u %u %u", &won[0], &won[1], &won[2], &won[3],
			    &won[4]) >= 3);
	if (won[1] != rounds)
		print_message("winners of a round:%s\n", t[0]->answer);
	assert_int_equal(won[1], rounds);
	assert_int_equal(slice_agreed(slice, 0), parties * CONTEXT_BYTES);
	for (unsigned i = 0; i < parties; i++)
		assert_int_equal(tenant_end(t[i]), 0);
}

static void of_two_processes_at_the_same_instant_one_gets_the_last_room(void **state)
{
	race(*state, 2, 5000);
}

static void of_four_processes_at_the_same_instant_one_gets_the_last_room(void **state)
{
	race(*state, 4, 500);
}

/* How many blocks of 64 MiB a fresh client gets. */
static uint64_t blocks_of(struct node *node, struct slice *slice, const char *a, const char *b)
{
	struct tenant *t = tenant_start(node, slice, "linked", a ? a : "A=", b ? b : "B=", NULL);
	uint64_t blocks;

	expect(t, OK, "primary 0");
	expect(t, OUT_OF_MEMORY, "fill 64m 100");
	blocks = tenant_number(t, "count");
	assert_int_equal(tenant_end(t), 0);
	return blocks;
}

static void the_environment_can_lower_a_share_and_never_raise_it(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);

	assert_int_equal(blocks_of(*state, slice, NULL, NULL), 7);
	assert_int_equal(blocks_of(*state, slice, "CUDA_DEVICE_MEMORY_LIMIT=100g", NULL), 7);
	assert_int_equal(blocks_of(*state, slice, "CUDA_DEVICE_MEMORY_LIMIT_0=100g", NULL), 7);
	assert_int_equal(blocks_of(*state, slice, "CUDA_DEVICE_MEMORY_LIMIT=0", NULL), 7);
	assert_int_equal(blocks_of(*state, slice, "CUDA_DEVICE_MEMORY_LIMIT=800m", NULL), 4);
	assert_int_equal(blocks_of(*state, slice, "CUDA_DEVICE_MEMORY_LIMIT_0=800M",
				 "CUDA_DEVICE_MEMORY_LIMIT=50g"),
		4);
	assert_int_equal(blocks_of(*state, slice, "CUDA_DEVICE_MEMORY_LIMIT_1=600m", NULL), 7);
}

static void the_environment_alone_sets_a_quota_too(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new_bare(node, "a", GIB, GIB);
	char region[320];

	snprintf(region, sizeof(region), "CUDA_DEVICE_MEMORY_SHARED_CACHE=%s", slice->region);
	assert_int_equal(blocks_of(node, slice, "CUDA_DEVICE_MEMORY_LIMIT=1g", region), 7);
	assert_int_equal(blocks_of(node, slice, "CUDA_DEVICE_MEMORY_LIMIT_0=1024m", region), 7);
	assert_int_equal(access(slice->region, F_OK), 0);
}

static void the_systems_share_bounds_what_a_tenant_brings(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "100g", NULL);
	char text[600], other[200];

	if (!node_can_have_system_share()) {
		print_message("skipped: no right to mount an /etc of its own here\n");
		skip();
	}
	slice->quota[0] = GIB;
	snprintf(text, sizeof(text), "vgpu-share 1\nregion %s\ndevice %s memory 1g\nend\n",
		slice->region, node->uuid[0]);
	node->system_share = text;
	assert_int_equal(blocks_of(node, slice, NULL, NULL), 7);
	assert_int_equal(blocks_of(node, slice, "VGPU_SHARE=", NULL), 7);
	assert_int_equal(blocks_of(node, slice, "CUDA_DEVICE_MEMORY_LIMIT=100g", NULL), 7);
	assert_int_equal(blocks_of(node, slice, "CUDA_DEVICE_MEMORY_LIMIT=800m", NULL), 4);
	snprintf(other, sizeof(other), "CUDA_DEVICE_MEMORY_SHARED_CACHE=%s/other", node->dir);
	assert_int_equal(blocks_of(node, slice, other, NULL), 7);
	node->system_share = NULL;
	assert_int_not_equal(access(strchr(other, '=') + 1, F_OK), 0);
}

static void enter_etc(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", "/etc", "tmpfs", 0, NULL) < 0 || mkdir("/etc/vgpu", 0755) < 0)
		_exit(77);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (!file || fputs(text, file) < 0 || fclose(file))
		_exit(77);
}

/* The list is read when the program begins, where a library that it names is not there. */
static void enter_with_list(const char *text, bool is_mount)
{
	enter_etc();
	put("/etc/list", text);
	put("/etc/ld.so.preload", is_mount ? "" : text);
	if (is_mount && mount("/etc/list", "/etc/ld.so.preload", NULL, MS_BIND, NULL) < 0)
		_exit(77);
}

/* A runtime makes an empty folder of what is to be mounted and is not there. */
static void enter_empty_folder(void)
{
	enter_etc();
	if (mkdir("/etc/empty", 0755) < 0 ||
		mount("/etc/empty", "/etc/vgpu", NULL, MS_BIND, NULL) < 0)
		_exit(77);
}

static void enter_folder_as_share(void)
{
	enter_etc();
	if (mkdir("/etc/vgpu/share", 0755) < 0)
		_exit(77);
}

static void enter_mounted_list(void)
{
	enter_with_list("/etc/vgpu-lib/libvgpu.so\n", true);
}

static void enter_list_of_hami(void)
{
	enter_with_list("/usr/local/vgpu/libvgpu.so\n", true);
}

static void enter_list_of_the_host(void)
{
	enter_with_list("/nowhere/libvgpu.so\n", false);
}

static void enter_list_of_others(void)
{
	enter_with_list("/nowhere/libother.so\n", true);
}

static void a_share_that_is_meant_to_be_there_and_is_not_refuses_all(void **state)
{
	static const struct {
		void (*enter)(void);
		const char *says;
	} missing[] = {{enter_empty_folder, "the share of this container is missing"},
		{enter_mounted_list, "the share of this container is missing"},
		{enter_folder_as_share, "a share file is broken"}};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "100g", NULL);
	char errors[4000];

	if (!node_can_have_system_share()) {
		print_message("skipped: no right to mount an /etc of its own here\n");
		skip();
	}
	node->is_loud = true;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		struct tenant *t;

		node->enter = missing[i].enter;
		unlink(node->errors);
		t = tenant_start(node, slice, "linked", "CUDA_DEVICE_MEMORY_LIMIT=100g", NULL);
		expect(t, OUT_OF_MEMORY, "primary 0");
		assert_int_equal(tenant_end(t), 0);
		node_read_errors(node, errors, sizeof(errors));
		assert_non_null(strstr(errors, missing[i].says));
		assert_non_null(strstr(errors, "path=/etc/vgpu/share"));
	}
	node->enter = NULL;
}

static void a_host_without_a_share_has_no_limits(void **state)
{
	static void (*const without[])(void) = {
		enter_etc, enter_list_of_the_host, enter_list_of_others, enter_list_of_hami};
	struct node *node = *state;

	if (!node_can_have_system_share()) {
		print_message("skipped: no right to mount an /etc of its own here\n");
		skip();
	}
	node->is_loud = true; /* the dynamic linker misses what the list names */
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		struct tenant *t;

		node->enter = without[i];
		t = tenant_start(node, NULL, "linked", NULL);
		expect(t, OK, "primary 0");
		expect(t, OK, "alloc a 20g");
		assert_int_equal(tenant_end(t), 0);
	}
	node->enter = NULL;
}

/* The limit of time, in percent, that a client of MPS at so many percent is under. */
static unsigned time_limit_of(struct node *node, struct slice *slice, const char *percent)
{
	struct tenant *t = tenant_start(
		node, slice, "linked", "CUDA_MPS_PIPE_DIRECTORY=/nowhere", percent, NULL);
	FILE *region;
	uint64_t limit = 0;

	expect(t, OK, "primary 0");
	region = fopen(slice->region, "re");
	assert_non_null(region);
	fseek(region, offsetof(struct hami_region, sm_limit_percent), SEEK_SET);
	assert_int_equal(fread(&limit, sizeof(limit), 1, region), 1);
	assert_int_equal(fclose(region), 0);
	assert_int_equal(tenant_end(t), 0);
	return (unsigned)limit;
}

static void mps_takes_the_limit_of_its_own_share_away_and_not_that_of_the_system(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	char own[600], system[600];

	snprintf(own, sizeof(own),
		"vgpu-share 1\nregion %s\nmps /nowhere\ndevice %s memory 1g cores 49.5\nend\n",
		slice->region, node->uuid[0]);
	slice_write(slice, own);
	assert_int_equal(time_limit_of(node, slice, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"), 100);
	assert_int_equal(time_limit_of(node, slice, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=51"), 50);
	assert_int_equal(time_limit_of(node, slice, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=x"), 50);
	assert_int_equal(time_limit_of(node, slice, "A="), 50);
	if (!node_can_have_system_share()) {
		print_message("skipped in part: no right to mount an /etc of its own here\n");
		return;
	}
	snprintf(system, sizeof(system),
		"vgpu-share 1\nregion %s\ndevice %s memory 1g cores 20\nend\n", slice->region,
		node->uuid[0]);
	node->system_share = system;
	assert_int_equal(time_limit_of(node, slice, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"), 20);
	node->system_share = NULL;
}

static void a_share_that_shrinks_or_grows_holds_within_100_ms(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(t, "count"), 7);
	slice_change(slice, "2g", NULL);
	usleep(CHANGE_US);
	expect(t, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(t, "count"), 16);
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), 2 * GIB);
	slice_change(slice, "1g", NULL);
	usleep(CHANGE_US);
	expect(t, OUT_OF_MEMORY, "alloc a 1");
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), GIB);
	assert_int_equal(tenant_number(t, "free"), 0);
	expect(t, OK, "drop");
	expect(t, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(t, "count"), 7);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 448 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_share_that_shrinks_to_nothing_refuses_all_and_a_unlimited_one_nothing(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	slice_change(slice, "0", NULL);
	usleep(CHANGE_US);
	expect(t, OUT_OF_MEMORY, "alloc a 1");
	slice_change(slice, "unlimited", NULL);
	usleep(CHANGE_US);
	expect(t, OK, "fill 1g 20");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 20 * GIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_share_that_disappears_keeps_its_last_meaning(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice), *late;

	node->is_loud = true;
	assert_int_equal(unlink(slice->share), 0);
	usleep(CHANGE_US);
	expect(t, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(t, "count"), 7);
	/* whoever starts without it cannot know its quota, and gets nothing */
	late = tenant_start(node, slice, "linked", NULL);
	expect(late, OUT_OF_MEMORY, "primary 0");
	slice_change(slice, "2g", NULL);
	usleep(CHANGE_US);
	expect(t, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(t, "count"), 16);
	slice_write(slice, "vgpu-share 1\ndevice * memory 10XB\nend\n");
	usleep(CHANGE_US);
	expect(t, OUT_OF_MEMORY, "alloc a 64m");
	expect(t, OK, "drop");
	expect(t, OK, "alloc a 64m");
	assert_int_equal(tenant_end(t), 0);
}

static void nonsense_in_the_environment_refuses_all_memory_and_says_so_once(void **state)
{
	static const char *const nonsense[] = {"10XB", "-1", "1.5x", "abc", "0m", "1g0", " ", "5 g",
		"99999999999999999999", "18446744073709551615g", "0x10"};
	struct node *node = *state;
	char option[128], errors[4096], *line;

	node->is_loud = true;
	for (unsigned i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		struct slice *slice = &node->slices[0];
		struct tenant *t;

		node->slice_count = 0;
		slice = slice_new_bare(node, "a", 0, 0);
		snprintf(option, sizeof(option), "CUDA_DEVICE_MEMORY_LIMIT=%s", nonsense[i]);
		unlink(node->errors);
		t = tenant_start(node, slice, "linked", option, NULL);
		expect(t, OUT_OF_MEMORY, "primary 0");
		expect(t, OUT_OF_MEMORY, "primary 1");
		assert_int_equal(tenant_end(t), 0);
		node_read_errors(node, errors, sizeof(errors));
		line = strchr(errors, '\n');
		if (strncmp(errors, "vgpu: level=error", 17) != 0 || !line || line[1] != '\0')
			print_message("%s: %s\n", nonsense[i], errors);
		assert_int_equal(strncmp(errors, "vgpu: level=error", 17), 0);
		assert_non_null(strstr(errors, "CUDA_DEVICE_MEMORY_LIMIT"));
		assert_non_null(line);
		assert_int_equal(line[1], '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(refusal_is_out_of_memory_and_a_smaller_block_still_fits),
		test_with_node(absurd_sizes_are_refused_like_any_other),
		test_with_node(a_quota_too_small_for_a_context_refuses_the_context),
		test_with_node(threads_together_stay_below_the_quota),
		test_with_node(of_two_processes_at_the_same_instant_one_gets_the_last_room),
		test_with_node(of_four_processes_at_the_same_instant_one_gets_the_last_room),
		test_with_node(the_environment_can_lower_a_share_and_never_raise_it),
		test_with_node(the_environment_alone_sets_a_quota_too),
		test_with_node(the_systems_share_bounds_what_a_tenant_brings),
		test_with_node(a_share_that_is_meant_to_be_there_and_is_not_refuses_all),
		test_with_node(a_host_without_a_share_has_no_limits),
		test_with_node(
			mps_takes_the_limit_of_its_own_share_away_and_not_that_of_the_system),
		test_with_node(a_share_that_shrinks_or_grows_holds_within_100_ms),
		test_with_node(
			a_share_that_shrinks_to_nothing_refuses_all_and_a_unlimited_one_nothing),
		test_with_node(a_share_that_disappears_keeps_its_last_meaning),
		test_with_node(nonsense_in_the_environment_refuses_all_memory_and_says_so_once),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that programs of a slice make: of its own processes, and not of what an operator has moved away. */
#include <stdio.h>
#include <unistd.h>

#include "region/evict.h"
#include "region/region.h"
#include "tests/tenant/tenant.h"

#define NOT_PERMITTED 800
#define NOT_SUPPORTED 801

static const char *const steps[] = {"lock", "checkpoint", "restore", "unlock"};

/* All are refused, and nothing happens; the process is in that state. */
static void expect_no_step(struct tenant *by, const struct tenant *of, int its_state)
{
	by->node->is_loud = true;
	for (unsigned i = 0; i < 4; i++)
		expect(by, NOT_PERMITTED, "move %s %d", steps[i], of->pid);
	expect(by, OK, "move state %d", of->pid);
	assert_int_equal(tenant_number(by, "state"), its_state);
}

static void a_program_stops_a_process_of_its_slice_and_brings_it_back(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *one = tenant_new(slice), *two = tenant_new(slice);

	expect(one, OK, "alloc a 300m");
	expect(two, OK, "move lock %d", one->pid);
	expect(two, OK, "move checkpoint %d", one->pid);
	assert_int_equal(slice_truth(slice, 0), CONTEXT_BYTES);
	/* Its place stays its own. */
	assert_int_equal(slice_books(slice, 0), 2 * CONTEXT_BYTES + 300 * MIB);
	expect(two, OUT_OF_MEMORY, "alloc b 800m");
	expect(two, NOT_SUPPORTED, "move elsewhere %d", one->pid);
	expect(two, OK, "move restore %d", one->pid);
	expect(two, OK, "move unlock %d", one->pid);
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 300 * MIB);
	expect(one, OK, "free a");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES);
}

static void nobody_of_a_suspended_slice_does(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *one = tenant_new(slice), *two = tenant_new(slice);
	char text[1024];

	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\nsuspended\ndevice * memory 2g\nend\n",
		slice->region);
	slice_write(slice, text);
	expect_no_step(two, one, 0);
	slice_change(slice, "2g", NULL);
	expect(two, OK, "move lock %d", one->pid);
	slice_write(slice, text);
	expect_no_step(two, one, 1);
	slice_change(slice, "2g", NULL);
	expect(two, OK, "move unlock %d", one->pid);
}

/* As vgpu suspend --evict does, by whomever its share says that it goes on. */
static void what_was_moved_away_from_outside_stays_away(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *one = tenant_new(slice), *two = tenant_new(slice);
	struct evict_process process = {.pid = (uint32_t)one->pid};
	struct region region;

	expect(one, OK, "alloc a 300m");
	assert_int_equal(region_open_existing(slice->region, &region), 0);
	while (atomic_load(&region.file->own.slots[process.slot].pid) != process.pid)
		process.slot++;
	process.start_time = atomic_load(&region.file->own.slots[process.slot].start_time);
	expect(two, OK, "move lock %d", one->pid);
	expect(two, OK, "move checkpoint %d", one->pid);
	assert_int_equal(evict_take(&region, &process), 0);
	expect_no_step(two, one, 2);
	/* Nor any other of the slice, as long as that is so. */
	expect_no_step(two, two, 0);
	assert_int_equal(evict_return(&region, &process), 0);
	expect(two, OK, "move restore %d", one->pid);
	expect(two, OK, "move unlock %d", one->pid);
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 300 * MIB);
	region_close(&region);
}

static void of_other_slices_it_stops_none(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct slice *other = slice_new(*state, "b", "2g", NULL);
	struct tenant *one = tenant_new(slice), *two = tenant_new(other);

	expect_no_step(two, one, 0);
	/* Of what is no process that has begun CUDA the driver says so. */
	expect(two, INVALID_VALUE, "move lock 1");
}

static void without_a_slice_the_driver_alone_decides(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *one = tenant_new(slice), *none = tenant_start(*state, NULL, "linked", NULL);

	expect(none, OK, "init");
	for (unsigned i = 0; i < 4; i++)
		expect(none, OK, "move %s %d", steps[i], one->pid);
	expect(one, OK, "alloc a 1m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_program_stops_a_process_of_its_slice_and_brings_it_back),
		test_with_node(nobody_of_a_suspended_slice_does),
		test_with_node(what_was_moved_away_from_outside_stays_away),
		test_with_node(of_other_slices_it_stops_none),
		test_with_node(without_a_slice_the_driver_alone_decides),
	};

	return cmocka_run_group_tests_name("tenant checkpoints", tests, NULL, NULL);
}

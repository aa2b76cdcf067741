/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant library's questions where no NVML counts: how often one is looked for. */
#include <errno.h>
#include <time.h>

#include "tenant/driver/attach.h"
#include "tenant/slice/nvml.h"
#include "tests/unit/cmocka_ready.h"

struct nvml_driver nvml;
_Atomic bool attach_has_cuda;
_Atomic unsigned attach_nvml_fills;

static unsigned looks, begun, ended;
static bool is_early, counts;

bool attach_nvml_is_early(void)
{
	return is_early;
}

bool attach_load_nvml(void)
{
	looks++;
	is_early &= !counts;
	return counts;
}

static nvmlReturn_t begin(void)
{
	begun++;
	return NVML_SUCCESS;
}

static nvmlReturn_t end(void)
{
	ended++;
	return NVML_SUCCESS;
}

static nvmlReturn_t no_device(const char *uuid, nvmlDevice_t *device)
{
	(void)uuid;
	(void)device;
	return NVML_ERROR_NOT_FOUND;
}

static int set_up(void **state)
{
	(void)state;
	nvml = (struct nvml_driver){
		.nvmlInit_v2 = begin, .nvmlShutdown = end, .nvmlDeviceGetHandleByUUID = no_device};
	looks = begun = ended = 0;
	is_early = counts = false;
	attach_has_cuda = false;
	nvml_reset_after_fork();
	return 0;
}

static void ask(unsigned times)
{
	struct process_rows rows;

	for (unsigned i = 0; i < times; i++)
		assert_int_equal(nvml_processes("GPU-a", &rows), -ENODEV);
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL);
}

static void where_none_counts_it_is_looked_for_once_a_second(void **state)
{
	(void)state;
	attach_has_cuda = true;
	ask(20);
	assert_int_equal(looks, 1);
	rest();
	ask(20);
	assert_int_equal(looks, 2);
	counts = true;
	ask(1);
	assert_false(nvml_is_begun());
	rest();
	ask(20);
	assert_int_equal(looks, 3);
	assert_int_equal(begun, 1);
}

/* What was begun before the driver was there is asked nothing more, whether another is found or not. */
static void an_early_one_is_asked_no_more(void **state)
{
	(void)state;
	counts = true;
	ask(1);
	assert_int_equal(begun, 1);
	attach_has_cuda = is_early = true;
	counts = false;
	ask(20);
	assert_int_equal(looks, 2);
	assert_int_equal(begun, 1);
	assert_int_equal(ended, 1);
	assert_false(nvml_is_begun());
}

static void before_the_driver_is_there_each_question_looks(void **state)
{
	(void)state;
	ask(3);
	assert_int_equal(looks, 3);
	counts = true;
	attach_has_cuda = true;
	ask(1);
	assert_int_equal(looks, 4);
	assert_true(nvml_is_begun());
}

static void after_a_fork_it_is_looked_for_at_once(void **state)
{
	(void)state;
	attach_has_cuda = true;
	ask(2);
	nvml_reset_after_fork();
	ask(2);
	assert_int_equal(looks, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(where_none_counts_it_is_looked_for_once_a_second, set_up),
		cmocka_unit_test_setup(an_early_one_is_asked_no_more, set_up),
		cmocka_unit_test_setup(before_the_driver_is_there_each_question_looks, set_up),
		cmocka_unit_test_setup(after_a_fork_it_is_looked_for_at_once, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

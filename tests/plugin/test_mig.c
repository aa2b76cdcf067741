/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of GPUs as pods have reserved them, on the simulated node, and that from any step on. */
#include "plugin/mig/mig.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "sim/machine/mig.h"
#include "sim/tests/nvml/scratch.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

static struct nvml_driver nvml;
static struct nvml_node node;
static char gpus[2][UUID_TEXT_BYTES];

/* The step at which the process dies; 0: never. */
static int deadly_step, steps;

void fault_hit(const char *place)
{
	if (++steps == deadly_step)
		kill(getpid(), SIGKILL);
}

bool fault_is_out_of_memory(void)
{
	return false;
}

static int begin(void **state)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlDevice_t device;

	scratch_begin("h200x2");
	assert_non_null(library);
	driver_load_nvml(library, dlsym, &nvml);
	driver_load_nvml_node(library, dlsym, &node);
	assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(i, &device), NVML_SUCCESS);
		assert_int_equal(
			nvml.nvmlDeviceGetUUID(device, gpus[i], UUID_TEXT_BYTES), NVML_SUCCESS);
	}
	deadly_step = 0;
	return 0;
}

static int end(void **state)
{
	nvml.nvmlShutdown();
	scratch_end();
	return 0;
}

static struct instance claim(unsigned gpu, const char *profile, unsigned start, unsigned size)
{
	struct instance instance = {.start = start, .size = size};

	strcpy(instance.gpu, gpus[gpu]);
	strcpy(instance.profile, profile);
	return instance;
}

static int give(struct instance *claims, unsigned count)
{
	struct err err = ERR_NULL;
	int r = mig_give(&nvml, &node, claims, count, &err);

	assert_int_equal(r != 0, err.text[0] != '\0');
	return r;
}

static unsigned count_on(unsigned gpu)
{
	struct partition_gpu found;
	struct partitions list;
	struct err err = ERR_NULL;

	assert_int_equal(partition_find_gpu(&nvml, &node, gpus[gpu], &found, &err), 0);
	/* A GPU that is whole has none. */
	return partition_list(&found, &list, &err) ? 0 : list.count;
}

static bool is_there(const struct instance *instance)
{
	return mig_is_there(&nvml, &node, instance);
}

static unsigned sweep(const struct instance *claims, size_t count)
{
	unsigned removed;

	return mig_sweep(&nvml, &node, gpus[0], claims, count, &removed);
}

static void a_reservation_is_made_exactly_and_once(void **state)
{
	struct instance claims[] = {
		claim(0, "1g.18gb", 6, 1), claim(0, "3g.71gb", 0, 4), claim(1, "2g.35gb", 2, 2)};
	struct instance again[3], fresh = claims[0];
	nvmlDevice_t device;

	assert_int_equal(give(claims, 3), 0);
	assert_int_equal(count_on(0), 2);
	assert_int_equal(count_on(1), 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(claims[i].is_given);
		assert_memory_equal(claims[i].uuid, "MIG-", 4);
		assert_int_equal(
			nvml.nvmlDeviceGetHandleByUUID(claims[i].uuid, &device), NVML_SUCCESS);
		assert_true(is_there(&claims[i]));
	}
	memcpy(again, claims, sizeof(again));
	assert_int_equal(give(again, 3), 0);
	assert_int_equal(count_on(0), 2);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(again[i].uuid, claims[i].uuid);
	/* another that wants the same place was not given it */
	assert_int_equal(give(&fresh, 1), -EBUSY);
	assert_true(is_there(&claims[0]));
}

static void one_that_cannot_be_had_leaves_none_of_the_others(void **state)
{
	struct instance before = claim(0, "1g.18gb", 0, 1), claims[3];

	assert_int_equal(give(&before, 1), 0);
	claims[0] = before;
	claims[1] = claim(0, "1g.18gb", 1, 1);
	claims[2] = claim(0, "2g.35gb", 0, 2);
	assert_int_equal(give(claims, 3), -EBUSY);
	assert_false(claims[1].is_given);
	assert_int_equal(count_on(0), 1);
	assert_true(is_there(&before));
}

/* A machine that was restarted has no instances, and its pods have them. */
static void what_was_given_and_is_gone_is_made_again(void **state)
{
	struct instance claims[] = {claim(0, "3g.71gb", 4, 4), claim(0, "1g.18gb", 0, 1)}, again[2];

	assert_int_equal(give(claims, 2), 0);
	assert_int_equal(sweep(NULL, 0), 0);
	assert_int_equal(count_on(0), 0);
	assert_false(is_there(&claims[0]));
	memcpy(again, claims, sizeof(again));
	assert_int_equal(give(again, 2), 0);
	assert_int_equal(count_on(0), 2);
	assert_true(is_there(&again[0]));
}

static void what_is_no_place_is_refused(void **state)
{
	struct instance wrong[] = {claim(0, "1g.10gb", 0, 1), claim(0, "1g.18gb", 7, 1),
		claim(0, "2g.35gb", 1, 2), claim(0, "3g.71gb", 0, 3)};
	struct instance unknown = claim(0, "1g.18gb", 0, 1);

	strcpy(unknown.gpu, "GPU-nowhere");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(give(&wrong[i], 1), -EINVAL);
	assert_int_equal(give(&unknown, 1), -ENODEV);
	assert_int_equal(count_on(0), 0);
}

/* D22: a pod that is terminating has its claim; one that is gone by force may have left a program. */
static void what_is_claimed_or_used_stays_and_stops_nothing(void **state)
{
	struct instance claims[] = {
		claim(0, "1g.18gb", 0, 1), claim(0, "1g.18gb", 1, 1), claim(0, "2g.35gb", 2, 2)};
	struct instance next = claim(0, "3g.71gb", 4, 4);
	pid_t program;

	assert_int_equal(give(claims, 3), 0);
	program = mig_program_start(0, (int)claims[0].instance);
	assert_int_equal(sweep(&claims[2], 1), 1);
	assert_int_equal(count_on(0), 2);
	assert_true(is_there(&claims[0]));
	assert_true(is_there(&claims[2]));
	assert_false(is_there(&claims[1]));
	assert_int_equal(give(&next, 1), 0);
	mig_program_end(program);
	assert_int_equal(sweep(&claims[2], 1), 0);
	assert_int_equal(count_on(0), 1);
}

/* Other ids than the pod was given: it is not its instance any more. */
static void an_instance_is_adopted_only_as_it_was_given(void **state)
{
	struct instance given = claim(0, "1g.18gb", 0, 1), other;

	assert_int_equal(give(&given, 1), 0);
	other = given;
	other.compute++;
	assert_false(is_there(&other));
	assert_int_equal(give(&other, 1), -EBUSY);
	other = given;
	other.uuid[8] ^= 1;
	assert_false(is_there(&other));
	assert_true(is_there(&given));
}

/* Killed at each step of giving and sweeping in turn: the next one finishes, and nothing is left over. */
static void from_any_step_on_the_next_one_finishes(void **state)
{
	const struct instance claims[] = {claim(0, "1g.18gb", 6, 1), claim(0, "3g.71gb", 0, 4)};
	bool is_killed = true;

	for (int step = 1; is_killed; step++) {
		struct instance old = claim(0, "7g.141gb", 0, 8), wanted[2];
		int status;
		pid_t pid;

		memcpy(wanted, claims, sizeof(wanted));
		assert_int_equal(give(&old, 1), 0);
		pid = fork();
		if (pid == 0) {
			struct err err = ERR_NULL;

			steps = 0;
			deadly_step = step;
			if (sweep(NULL, 0) || mig_give(&nvml, &node, wanted, 2, &err))
				_exit(1);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		is_killed = WIFSIGNALED(status);
		assert_true(is_killed || status == 0);
		assert_int_equal(sweep(NULL, 0), 0);
		assert_int_equal(give(wanted, 2), 0);
		assert_int_equal(count_on(0), 2);
		assert_int_equal(sweep(claims, 2), 0);
		assert_int_equal(count_on(0), 2);
		assert_int_equal(sweep(NULL, 0), 0);
		assert_int_equal(count_on(0), 0);
		assert_true(step < 20);
	}
}

static void a_mode_that_is_pending_is_an_error(void **state)
{
	struct instance wanted = claim(0, "1g.18gb", 0, 1);
	struct holder holder = holder_start("whole", 0, 1, 1 << 20);

	assert_int_equal(give(&wanted, 1), -EBUSY);
	holder_end(&holder);
	assert_int_equal(give(&wanted, 1), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_reservation_is_made_exactly_and_once),
		TEST(one_that_cannot_be_had_leaves_none_of_the_others),
		TEST(what_was_given_and_is_gone_is_made_again),
		TEST(what_is_no_place_is_refused),
		TEST(what_is_claimed_or_used_stays_and_stops_nothing),
		TEST(an_instance_is_adopted_only_as_it_was_given),
		TEST(from_any_step_on_the_next_one_finishes),
		TEST(a_mode_that_is_pending_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

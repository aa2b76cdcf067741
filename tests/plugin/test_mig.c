/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of GPUs as pods have reserved them, on the simulated node, and that from any step on. */
#include "plugin/mig.h"

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

static struct mig_claim claim(unsigned gpu, const char *profile, unsigned start, unsigned size)
{
	return (struct mig_claim){gpus[gpu], profile, start, size};
}

static int give(const struct mig_claim *claims, unsigned count, struct mig_part *ret_parts)
{
	struct err err = ERR_NULL;
	int r = mig_give(&nvml, &node, claims, count, ret_parts, &err);

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

static void a_reservation_is_made_exactly_and_once(void **state)
{
	const struct mig_claim claims[] = {
		claim(0, "1g.18gb", 6, 1), claim(0, "3g.71gb", 0, 4), claim(1, "2g.35gb", 2, 2)};
	struct mig_part parts[3], again[3];
	nvmlDevice_t device;

	assert_int_equal(give(claims, 3, parts), 0);
	assert_int_equal(count_on(0), 2);
	assert_int_equal(count_on(1), 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_memory_equal(parts[i].uuid, "MIG-", 4);
		assert_int_equal(
			nvml.nvmlDeviceGetHandleByUUID(parts[i].uuid, &device), NVML_SUCCESS);
		assert_true(mig_is_given(&nvml, &node, &claims[i], &parts[i]));
	}
	assert_int_equal(give(claims, 3, again), 0);
	assert_int_equal(count_on(0), 2);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(again[i].uuid, parts[i].uuid);
}

static void one_that_cannot_be_had_leaves_none_of_the_others(void **state)
{
	const struct mig_claim before = claim(0, "1g.18gb", 0, 1);
	const struct mig_claim claims[] = {
		claim(0, "1g.18gb", 0, 1), claim(0, "1g.18gb", 1, 1), claim(0, "2g.35gb", 0, 2)};
	struct mig_part parts[3];

	assert_int_equal(give(&before, 1, parts), 0);
	assert_int_equal(give(claims, 3, parts), -EBUSY);
	assert_int_equal(count_on(0), 1);
	assert_true(mig_is_given(&nvml, &node, &before, &parts[0]));
}

static void what_is_no_place_is_refused(void **state)
{
	const struct mig_claim wrong[] = {claim(0, "1g.10gb", 0, 1), claim(0, "1g.18gb", 7, 1),
		claim(0, "2g.35gb", 1, 2), claim(0, "3g.71gb", 0, 3)};
	const struct mig_claim unknown = {"GPU-nowhere", "1g.18gb", 0, 1};
	struct mig_part part;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(give(&wrong[i], 1, &part), -EINVAL);
	assert_int_equal(give(&unknown, 1, &part), -ENODEV);
	assert_int_equal(count_on(0), 0);
}

/* A program in a container. */
static pid_t start_program(unsigned instance)
{
	struct machine *machine;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (machine_open(NULL, NULL, &machine, NULL, 0) || machine_join(machine))
			_exit(1);
		mig_use(machine, 0, instance, 0);
		machine_set_contexts(machine, 0, 1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* A pod that is terminating has its claim; one that is gone by force may have left a program. */
static void what_is_claimed_or_used_stays_and_stops_nothing(void **state)
{
	const struct mig_claim claims[] = {
		claim(0, "1g.18gb", 0, 1), claim(0, "1g.18gb", 1, 1), claim(0, "2g.35gb", 2, 2)};
	const struct mig_claim next = claim(0, "3g.71gb", 4, 4);
	struct mig_part parts[3], other;
	pid_t program;

	assert_int_equal(give(claims, 3, parts), 0);
	program = start_program(parts[0].instance);
	assert_int_equal(mig_sweep(&nvml, &node, gpus[0], &claims[2], 1), 1);
	assert_int_equal(count_on(0), 2);
	assert_true(mig_is_given(&nvml, &node, &claims[0], &parts[0]));
	assert_true(mig_is_given(&nvml, &node, &claims[2], &parts[2]));
	assert_false(mig_is_given(&nvml, &node, &claims[1], &parts[1]));
	assert_int_equal(give(&next, 1, &other), 0);
	kill(program, SIGKILL);
	waitpid(program, NULL, 0);
	assert_int_equal(mig_sweep(&nvml, &node, gpus[0], &claims[2], 1), 0);
	assert_int_equal(count_on(0), 1);
}

/* Other ids than the pod was given: it is not its part any more. */
static void a_part_is_adopted_only_as_it_was_given(void **state)
{
	const struct mig_claim claims[] = {claim(0, "1g.18gb", 0, 1)};
	struct mig_part part, other;

	assert_int_equal(give(claims, 1, &part), 0);
	other = part;
	other.compute++;
	assert_false(mig_is_given(&nvml, &node, claims, &other));
	other = part;
	other.uuid[8] ^= 1;
	assert_false(mig_is_given(&nvml, &node, claims, &other));
	assert_true(mig_is_given(&nvml, &node, claims, &part));
}

/* Killed at each step of giving and sweeping in turn: the next one finishes, and nothing is left over. */
static void from_any_step_on_the_next_one_finishes(void **state)
{
	const struct mig_claim old = claim(0, "7g.141gb", 0, 8);
	const struct mig_claim claims[] = {claim(0, "1g.18gb", 6, 1), claim(0, "3g.71gb", 0, 4)};
	bool is_killed = true;

	for (int step = 1; is_killed; step++) {
		struct mig_part parts[2];
		int status;
		pid_t pid;

		assert_int_equal(give(&old, 1, parts), 0);
		pid = fork();
		if (pid == 0) {
			struct err err = ERR_NULL;

			steps = 0;
			deadly_step = step;
			if (mig_sweep(&nvml, &node, gpus[0], claims, 2) ||
				mig_give(&nvml, &node, claims, 2, parts, &err))
				_exit(1);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		is_killed = WIFSIGNALED(status);
		assert_true(is_killed || status == 0);
		assert_int_equal(mig_sweep(&nvml, &node, gpus[0], claims, 2), 0);
		assert_int_equal(give(claims, 2, parts), 0);
		assert_int_equal(count_on(0), 2);
		assert_int_equal(mig_sweep(&nvml, &node, gpus[0], &old, 1), 0);
		assert_int_equal(mig_sweep(&nvml, &node, gpus[0], NULL, 0), 0);
		assert_int_equal(count_on(0), 0);
		assert_true(step < 20);
	}
}

static void a_mode_that_is_pending_is_an_error(void **state)
{
	const struct mig_claim wanted = claim(0, "1g.18gb", 0, 1);
	struct holder holder = holder_start("whole", 0, 1, 1 << 20);
	struct mig_part part;

	assert_int_equal(give(&wanted, 1, &part), -EBUSY);
	holder_end(&holder);
	assert_int_equal(give(&wanted, 1, &part), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_reservation_is_made_exactly_and_once),
		TEST(one_that_cannot_be_had_leaves_none_of_the_others),
		TEST(what_is_no_place_is_refused),
		TEST(what_is_claimed_or_used_stays_and_stops_nothing),
		TEST(a_part_is_adopted_only_as_it_was_given),
		TEST(from_any_step_on_the_next_one_finishes),
		TEST(a_mode_that_is_pending_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

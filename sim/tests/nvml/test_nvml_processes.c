/* SPDX-License-Identifier: Apache-2.0 */
/* What libnvidia-ml.so.1 of the simulated node tells of memory, processes and their work. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sim/tests/nvml/session.h"

static void both_memory_interfaces_agree(void **state)
{
	struct holder holder = holder_start("a", 1, 1, 100 * MiB);
	nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
	nvmlMemory_t first;

	OK(nvmlDeviceGetMemoryInfo(device_at(1), &first));
	OK(nvmlDeviceGetMemoryInfo_v2(device_at(1), &second));
	assert_true(second.used >= 618 * MiB);
	assert_true(first.total == second.total);
	assert_true(first.free == second.free);
	assert_true(first.used == second.used + second.reserved);
	assert_true(first.free + first.used == first.total);
	second.version = 0x1000028;
	assert_int_equal(
		nvmlDeviceGetMemoryInfo_v2(device_at(1), &second), NVML_ERROR_FUNCTION_NOT_FOUND);
	assert_int_equal(nvmlDeviceGetMemoryInfo(device_at(1), NULL), NVML_ERROR_INVALID_ARGUMENT);
	holder_end(&holder);
	OK(nvmlDeviceGetMemoryInfo(device_at(1), &first));
	assert_true(first.used == 644939776);
}

static uint64_t bytes_of(const nvmlProcessInfo_t *infos, unsigned int count, pid_t pid)
{
	for (unsigned int i = 0; i < count; i++)
		if (infos[i].pid == (unsigned int)pid)
			return infos[i].usedGpuMemory;
	return 0;
}

static void two_processes_are_listed_with_what_they_hold(void **state)
{
	struct holder a = holder_start("a", 0, 1, 100 * MiB);
	struct holder b = holder_start("b", 0, 2, 2 * MiB);
	struct holder without_context = holder_start("c", 0, 0, 2 * MiB);
	nvmlProcessInfo_v1_t old[8];
	nvmlProcessInfo_t infos[8];
	unsigned int count = 8;

	OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 2);
	assert_true(bytes_of(infos, count, a.pid) == 618 * MiB);
	assert_true(bytes_of(infos, count, b.pid) == 2 * 518 * MiB + 2 * MiB);
	assert_true(infos[0].gpuInstanceId == NVML_INSTANCE_NOT_AVAILABLE);
	count = 2;
	OK(nvmlDeviceGetComputeRunningProcesses(device_at(0), &count, old));
	assert_true(old[0].pid == infos[0].pid && old[0].usedGpuMemory == infos[0].usedGpuMemory);
	assert_true(old[1].pid == infos[1].pid && old[1].usedGpuMemory == infos[1].usedGpuMemory);
	count = 8;
	OK(nvmlDeviceGetComputeRunningProcesses_v2(device_at(1), &count, infos));
	assert_int_equal(count, 0);
	OK(nvmlDeviceGetGraphicsRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 0);
	holder_end(&without_context);
	holder_end(&b);
	count = 8;
	OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 1);
	holder_end(&a);
}

static void too_little_room_is_answered_with_the_number(void **state)
{
	struct holder a = holder_start("a", 0, 1, 0), b = holder_start("b", 0, 1, 0);
	nvmlProcessDetail_v1_t details[4];
	nvmlProcessDetailList_t list = {.version = nvmlProcessDetailList_v1};
	nvmlProcessInfo_t infos[4];
	unsigned int count = 0;

	assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, NULL),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 2);
	count = 1;
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 2);
	count = 4;
	assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, NULL),
		NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(nvmlDeviceGetRunningProcessDetailList(device_at(0), &list),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(list.numProcArrayEntries, 2);
	list.procArray = details;
	OK(nvmlDeviceGetRunningProcessDetailList(device_at(0), &list));
	assert_true(details[1].usedGpuMemory == 518 * MiB);
	list.version = 1;
	assert_int_equal(nvmlDeviceGetRunningProcessDetailList(device_at(0), &list),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	holder_end(&a);
	holder_end(&b);
}

static void a_contained_process_has_its_pid_of_the_asker(void **state)
{
	struct holder holder = holder_start_contained("c", 0, 2 * MiB);
	nvmlProcessInfo_t infos[4];
	unsigned int count = 4;

	if (!holder.pid)
		skip();
	OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 1);
	assert_int_not_equal(infos[0].pid, 1);
	assert_true(infos[0].usedGpuMemory == 520 * MiB);
	holder_end(&holder);
}

/* NVML with words in $VGPU_SIM_NVML, until the end of the test. */
static void begin_again(const char *words)
{
	OK(nvmlShutdown());
	setenv("VGPU_SIM_NVML", words, 1);
	OK(nvmlInit_v2());
	unsetenv("VGPU_SIM_NVML");
}

static void an_older_driver_lists_other_pids(void **state)
{
	struct holder a = holder_start("a", 0, 1, 0), b = holder_start("a", 0, 1, 0);
	nvmlProcessInfo_t infos[4];
	unsigned int count = 4;
	char name[64];

	begin_again("host-pids");
	OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 2);
	assert_int_equal(infos[0].pid & 0x3fffff, a.pid);
	assert_int_equal(infos[1].pid & 0x3fffff, b.pid);
	assert_int_not_equal(infos[0].pid, a.pid);
	assert_int_equal(nvmlSystemGetProcessName(infos[0].pid, name, 64), NVML_ERROR_NOT_FOUND);
	holder_end(&a);
	holder_end(&b);
}

static void records_are_kept_where_accounting_is_on(void **state)
{
	struct holder a = holder_start("a", 0, 1, 2 * MiB), b = holder_start("b", 0, 1, 0);
	nvmlAccountingStats_t stats;
	nvmlEnableState_t mode;
	unsigned int pids[4], count = 4;

	OK(nvmlDeviceGetAccountingMode(device_at(0), &mode));
	assert_int_equal(mode, NVML_FEATURE_DISABLED);
	OK(nvmlDeviceGetAccountingPids(device_at(0), &count, pids));
	assert_int_equal(count, 0);
	assert_int_equal(nvmlDeviceGetAccountingStats(device_at(0), (unsigned)a.pid, &stats),
		NVML_ERROR_NOT_SUPPORTED);
	begin_again("accounting");
	OK(nvmlDeviceGetAccountingMode(device_at(0), &mode));
	assert_int_equal(mode, NVML_FEATURE_ENABLED);
	assert_int_equal(nvmlDeviceGetAccountingPids(device_at(0), &count, NULL),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 2);
	OK(nvmlDeviceGetAccountingPids(device_at(0), &count, pids));
	assert_int_equal(pids[0], a.pid);
	assert_int_equal(pids[1], b.pid);
	OK(nvmlDeviceGetAccountingStats(device_at(0), pids[0], &stats));
	assert_true(stats.maxMemoryUsage == 520 * MiB && stats.isRunning);
	assert_int_equal(
		nvmlDeviceGetAccountingStats(device_at(1), pids[0], &stats), NVML_ERROR_NOT_FOUND);
	assert_int_equal(nvmlDeviceGetAccountingStats(device_at(0), pids[0], NULL),
		NVML_ERROR_INVALID_ARGUMENT);
	holder_end(&a);
	holder_end(&b);
}

static void work_shows_as_utilization_power_and_heat(void **state)
{
	struct holder holder = holder_start("a", 0, 1, 2 * MiB);
	nvmlProcessUtilizationSample_t samples[72];
	unsigned int idle, busy, count = 8;
	nvmlUtilization_t utilization;

	OK(nvmlDeviceGetUtilizationRates(device_at(0), &utilization));
	assert_in_range(utilization.gpu, 30, 60);
	OK(nvmlDeviceGetPowerUsage(device_at(0), &busy));
	OK(nvmlDeviceGetPowerUsage(device_at(1), &idle));
	assert_true(busy > idle && idle == 79150);
	OK(nvmlDeviceGetTemperature(device_at(0), NVML_TEMPERATURE_GPU, &busy));
	OK(nvmlDeviceGetTemperature(device_at(1), NVML_TEMPERATURE_GPU, &idle));
	assert_true(busy > idle);
	OK(nvmlDeviceGetClockInfo(device_at(0), NVML_CLOCK_SM, &busy));
	OK(nvmlDeviceGetClockInfo(device_at(1), NVML_CLOCK_SM, &idle));
	assert_true(busy == 1980 && idle == 345);
	assert_int_equal(nvmlDeviceGetProcessUtilization(device_at(0), samples, &count, 0),
		NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 72);
	OK(nvmlDeviceGetProcessUtilization(device_at(0), samples, &count, 0));
	assert_int_equal(count, 1);
	assert_int_equal(samples[0].pid, holder.pid);
	assert_in_range(samples[0].smUtil, 30, 60);
	count = 72;
	assert_int_equal(nvmlDeviceGetProcessUtilization(device_at(0), samples, &count, ~0ull),
		NVML_ERROR_NOT_FOUND);
	holder_end(&holder);
}

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

static void wait_us(unsigned long long us)
{
	unsigned long long end = now_us() + us;

	while (now_us() < end)
		usleep(1000);
}

static void two_processes_that_take_turns_show_half_each(void **state)
{
	nvmlProcessUtilizationSample_t samples[72];
	nvmlProcessUtilizationInfo_v1_t rows[72];
	nvmlProcessesUtilizationInfo_t info = {
		.version = nvmlProcessesUtilizationInfo_v1, .procUtilArray = rows};
	unsigned long long began, seen;
	nvmlUtilization_t utilization;
	struct holder a, b;
	unsigned int count = 72;

	scratch_set_work(60000000000ull);
	a = holder_start("a", 0, 1, 2 * MiB);
	b = holder_start("b", 0, 1, 2 * MiB);
	began = now_us();
	wait_us(1000000); /* in sixths, as a card shows it */
	OK(nvmlDeviceGetProcessUtilization(device_at(0), samples, &count, began));
	assert_int_equal(count, 2);
	for (int i = 0; i < 2; i++) {
		assert_in_range(samples[i].smUtil, 16, 84);
		assert_in_range(samples[i].timeStamp, began + 1000000, now_us());
	}
	seen = samples[0].timeStamp;
	/* Nothing is newer than that by more than the time between samples. */
	count = 72;
	assert_int_equal(
		nvmlDeviceGetProcessUtilization(device_at(0), samples, &count, seen + 1000000),
		NVML_ERROR_NOT_FOUND);
	assert_int_equal(count, 0);
	wait_us(100000);
	info.processSamplesCount = 72;
	info.lastSeenTimeStamp = seen;
	OK(nvmlDeviceGetProcessesUtilizationInfo(device_at(0), &info));
	assert_int_equal(info.processSamplesCount, 2);
	for (int i = 0; i < 2; i++) {
		assert_in_range(rows[i].smUtil, 16, 84);
		assert_true(rows[i].timeStamp > seen);
	}
	wait_us(800000);
	OK(nvmlDeviceGetUtilizationRates(device_at(0), &utilization));
	/* While it changes over, 0.15 ms each 2 ms, it works for nobody. */
	assert_in_range(utilization.gpu, 90, 100);
	holder_end(&a);
	holder_end(&b);
	scratch_set_work(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_memory_interfaces_agree),
		TEST(two_processes_are_listed_with_what_they_hold),
		TEST(too_little_room_is_answered_with_the_number),
		TEST(a_contained_process_has_its_pid_of_the_asker),
		TEST(an_older_driver_lists_other_pids),
		TEST(records_are_kept_where_accounting_is_on),
		TEST(work_shows_as_utilization_power_and_heat),
		TEST(two_processes_that_take_turns_show_half_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

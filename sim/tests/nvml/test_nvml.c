/* SPDX-License-Identifier: Apache-2.0 */
/* libnvidia-ml.so.1 of the simulated node, linked as a program links the real one. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/machine/event.h"
#include "sim/machine/inject.h"
#include "sim/tests/nvml/session.h"

static void calls_before_init_are_refused(void **state)
{
	unsigned int count = 7;
	char text[80];

	OK(nvmlShutdown());
	assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(nvmlSystemGetDriverVersion(text, 80), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(count, 7);
}

static void init_and_shutdown_are_counted(void **state)
{
	unsigned int count;

	OK(nvmlInit());
	OK(nvmlInitWithFlags(8));
	OK(nvmlShutdown());
	OK(nvmlShutdown());
	OK(nvmlDeviceGetCount_v2(&count));
	assert_int_equal(count, 2);
	OK(nvmlShutdown());
	assert_int_equal(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
}

static void asking_does_not_make_a_process_of_the_machine(void **state)
{
	unsigned int count = 64;
	nvmlProcessInfo_t infos[64];
	nvmlMemory_t memory;

	OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(0), &count, infos));
	assert_int_equal(count, 0);
	OK(nvmlDeviceGetMemoryInfo(device_at(0), &memory));
	assert_true(memory.total == 150754820096 && memory.free == 150109880320);
	assert_true(memory.used == 644939776);
}

static void a_device_is_found_by_all_its_names(void **state)
{
	char uuid[96], serial[30];
	nvmlDevice_t device;
	nvmlPciInfo_t pci;

	OK(nvmlDeviceGetUUID(device_at(1), uuid, sizeof(uuid)));
	OK(nvmlDeviceGetSerial(device_at(1), serial, sizeof(serial)));
	OK(nvmlDeviceGetPciInfo_v3(device_at(1), &pci));
	assert_string_equal(pci.busId, "00000000:00:07.0");
	assert_string_equal(pci.busIdLegacy, "0000:00:07.0");
	assert_int_equal(strlen(uuid), 40);
	OK(nvmlDeviceGetHandleByUUID(uuid, &device));
	assert_ptr_equal(device, device_at(1));
	OK(nvmlDeviceGetHandleBySerial(serial, &device));
	assert_ptr_equal(device, device_at(1));
	OK(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &device));
	assert_ptr_equal(device, device_at(1));
	OK(nvmlDeviceGetHandleByPciBusId(pci.busIdLegacy, &device));
	assert_ptr_equal(device, device_at(1));
	uuid[20] ^= 1;
	assert_int_equal(nvmlDeviceGetHandleByUUID(uuid, &device), NVML_ERROR_NOT_FOUND);
	assert_int_equal(
		nvmlDeviceGetHandleByPciBusId_v2("0000:77:00.0", &device), NVML_ERROR_NOT_FOUND);
	assert_int_equal(
		nvmlDeviceGetHandleByPciBusId_v2("zz", &device), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(
		nvmlDeviceGetName((nvmlDevice_t)uuid, uuid, 80), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(nvmlDeviceGetName(device_at(0), uuid, 4), NVML_ERROR_INSUFFICIENT_SIZE);
}

static void visible_devices_of_cuda_change_nothing(void **state)
{
	unsigned int count;

	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	OK(nvmlShutdown());
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_int_equal(count, 2);
}

/* The machine of the second card, as a container of it sees it. */
static void a_card_that_the_runtime_left_out_is_not_there(void **state)
{
	const char *const none[] = {"", "void", "none", "7"};
	char uuid[2][80], seen[80];
	unsigned int count;
	nvmlDevice_t other = device_at(0), device;

	for (unsigned int i = 0; i < 2; i++)
		OK(nvmlDeviceGetUUID(device_at(i), uuid[i], sizeof(uuid[i])));
	OK(nvmlShutdown());
	setenv("NVIDIA_VISIBLE_DEVICES", uuid[1], 1);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	assert_int_equal(count, 1);
	OK(nvmlDeviceGetUUID(device_at(0), seen, sizeof(seen)));
	assert_string_equal(seen, uuid[1]);
	OK(nvmlDeviceGetIndex(device_at(0), &count));
	assert_int_equal(count, 0);
	OK(nvmlDeviceGetMinorNumber(device_at(0), &count));
	assert_int_equal(count, 1);
	assert_int_equal(nvmlDeviceGetHandleByUUID(uuid[0], &device), NVML_ERROR_NOT_FOUND);
	assert_int_equal(nvmlDeviceGetName(other, seen, 80), NVML_ERROR_INVALID_ARGUMENT);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		OK(nvmlShutdown());
		setenv("NVIDIA_VISIBLE_DEVICES", none[i], 1);
		OK(nvmlInit_v2());
		OK(nvmlDeviceGetCount_v2(&count));
		assert_int_equal(count, 0);
	}
	unsetenv("NVIDIA_VISIBLE_DEVICES");
}

static void cards_with_links_reach_each_other(void **state)
{
	nvmlGpuTopologyLevel_t level;
	nvmlGpuP2PStatus_t status;
	nvmlEnableState_t is_active;
	unsigned int count = 0;
	nvmlDevice_t nearest;

	OK(nvmlDeviceGetTopologyCommonAncestor(device_at(0), device_at(1), &level));
	assert_int_equal(level, NVML_TOPOLOGY_HOSTBRIDGE);
	OK(nvmlDeviceGetTopologyNearestGpus(device_at(0), level, &count, NULL));
	assert_int_equal(count, 1);
	OK(nvmlDeviceGetTopologyNearestGpus(device_at(0), level, &count, &nearest));
	assert_ptr_equal(nearest, device_at(1));
	OK(nvmlDeviceGetP2PStatus(device_at(0), device_at(1), NVML_P2P_CAPS_INDEX_NVLINK, &status));
	assert_int_equal(status, NVML_P2P_STATUS_OK);
	OK(nvmlDeviceGetNvLinkState(device_at(0), 17, &is_active));
	assert_int_equal(is_active, NVML_FEATURE_ENABLED);
	assert_int_equal(nvmlDeviceGetNvLinkState(device_at(0), 18, &is_active),
		NVML_ERROR_INVALID_ARGUMENT);
}

static void waiting_for_an_event_times_out(void **state)
{
	struct timespec before, after;
	nvmlEventData_t data;
	nvmlEventSet_t set;

	OK(nvmlEventSetCreate(&set));
	OK(nvmlDeviceRegisterEvents(device_at(0), nvmlEventTypeXidCriticalError, set));
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(nvmlEventSetWait_v2(set, &data, 20), NVML_ERROR_TIMEOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >=
		    19000000);
	OK(nvmlEventSetFree(set));
	assert_int_equal(nvmlEventSetFree(NULL), NVML_ERROR_INVALID_ARGUMENT);
}

static void an_event_is_seen_by_those_who_asked_for_it(void **state)
{
	struct machine *machine;
	nvmlEventSet_t set;
	nvmlEventData_t data;
	unsigned long long errors;

	assert_int_equal(machine_open(NULL, NULL, &machine, NULL, 0), 0);
	event_raise(machine, 1, &(struct event_report){EVENT_XID, 13});
	OK(nvmlEventSetCreate(&set));
	OK(nvmlDeviceRegisterEvents(device_at(1), nvmlEventTypeXidCriticalError, set));
	event_raise(machine, 0, &(struct event_report){EVENT_XID, 31});
	event_raise(machine, 1, &(struct event_report){EVENT_ECC_UNCORRECTED, 0});
	event_raise(machine, 1, &(struct event_report){EVENT_XID, 79});
	OK(nvmlEventSetWait_v2(set, &data, 1000));
	assert_ptr_equal(data.device, device_at(1));
	assert_int_equal(data.eventType, nvmlEventTypeXidCriticalError);
	assert_int_equal(data.eventData, 48); /* of the memory's error */
	OK(nvmlEventSetWait_v2(set, &data, 1000));
	assert_int_equal(data.eventData, 79);
	assert_int_equal(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
	OK(nvmlDeviceGetTotalEccErrors(
		device_at(1), NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors));
	assert_int_equal(errors, 1);
	OK(nvmlDeviceGetTotalEccErrors(
		device_at(0), NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors));
	assert_int_equal(errors, 0);
	OK(nvmlEventSetFree(set));
	machine_close(machine);
}

static void fields_have_a_result_each(void **state)
{
	nvmlFieldValue_t fields[3] = {{.fieldId = NVML_FI_DEV_POWER_INSTANT}, {.fieldId = 9999},
		{.fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT}};
	nvmlTemperature_t temperature = {.version = nvmlTemperature_v1};
	unsigned int celsius, milliwatts, count = 0;
	nvmlValueType_t type;
	nvmlSample_t sample;

	OK(nvmlDeviceGetFieldValues(device_at(0), 3, fields));
	OK(fields[0].nvmlReturn);
	OK(nvmlDeviceGetPowerUsage(device_at(0), &milliwatts));
	assert_int_equal(fields[0].value.uiVal, milliwatts);
	assert_int_equal(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(fields[2].value.uiVal, 18);
	OK(nvmlDeviceGetTemperatureV(device_at(0), &temperature));
	OK(nvmlDeviceGetTemperature(device_at(0), NVML_TEMPERATURE_GPU, &celsius));
	assert_int_equal(temperature.temperature, celsius);
	temperature.version = 7;
	assert_int_equal(nvmlDeviceGetTemperatureV(device_at(0), &temperature),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	OK(nvmlDeviceGetSamples(device_at(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, NULL));
	OK(nvmlDeviceGetSamples(device_at(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, &sample));
	assert_int_equal(sample.sampleValue.uiVal, milliwatts);
}

static void mig_is_off(void **state)
{
	unsigned int current, pending, count;
	nvmlDevice_t part;

	OK(nvmlDeviceGetMigMode(device_at(0), &current, &pending));
	assert_true(!current && !pending);
	OK(nvmlDeviceGetMaxMigDeviceCount(device_at(0), &count));
	assert_int_equal(count, 0);
	assert_int_equal(
		nvmlDeviceGetMigDeviceHandleByIndex(device_at(0), 0, &part), NVML_ERROR_NOT_FOUND);
}

/* Every function, called with nothing at all, may refuse, but it comes back and is counted. */
static void every_function_is_counted_and_survives_zeroes(void **state)
{
	static const struct {
		const char *name;
		long (*call)(long, long, long, long, long, long);
	} functions[] = {
#define ENTRY(symbol) {#symbol, (long (*)(long, long, long, long, long, long))(void *)symbol},
#include "sim/nvml/entry.def"
	};
	struct machine *machine;

	assert_int_equal(machine_open(NULL, NULL, &machine, NULL, 0), 0);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		int call = call_find(functions[i].name);

		OK(nvmlInit_v2());
		functions[i].call(0, 0, 0, 0, 0, 0);
		if (call < 0)
			skip();
		if (functions[i].call != (void *)nvmlErrorString &&
			!inject_read_count(machine, (unsigned int)call))
			fail_msg("%s is not counted", functions[i].name);
	}
	machine_close(machine);
}

static void an_injected_fault_hits_the_named_call(void **state)
{
	struct inject_rule rule = {.symbol = "nvmlDeviceGetMemoryInfo",
		.tag = "*",
		.skip = 1,
		.times = 1,
		.result = NVML_ERROR_GPU_IS_LOST};
	struct machine *machine;
	nvmlMemory_t memory;

	if (call_find(rule.symbol) < 0)
		skip();
	assert_int_equal(machine_open(NULL, NULL, &machine, NULL, 0), 0);
	assert_true(inject_add_rule(machine, &rule) >= 0);
	OK(nvmlDeviceGetMemoryInfo(device_at(0), &memory));
	assert_int_equal(nvmlDeviceGetMemoryInfo(device_at(0), &memory), NVML_ERROR_GPU_IS_LOST);
	OK(nvmlDeviceGetMemoryInfo(device_at(0), &memory));
	machine_close(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_before_init_are_refused),
		TEST(init_and_shutdown_are_counted),
		TEST(asking_does_not_make_a_process_of_the_machine),
		TEST(a_device_is_found_by_all_its_names),
		TEST(visible_devices_of_cuda_change_nothing),
		TEST(cards_with_links_reach_each_other),
		TEST(a_card_that_the_runtime_left_out_is_not_there),
		TEST(waiting_for_an_event_times_out),
		TEST(an_event_is_seen_by_those_who_asked_for_it),
		TEST(fields_have_a_result_each),
		TEST(mig_is_off),
		TEST(every_function_is_counted_and_survives_zeroes),
		TEST(an_injected_fault_hits_the_named_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

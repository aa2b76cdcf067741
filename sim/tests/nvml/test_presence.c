/* SPDX-License-Identifier: Apache-2.0 */
/* NVML where a card is lost or the driver gone, and where they are there again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/event.h"
#include "sim/machine/presence.h"
#include "sim/tests/nvml/scratch.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"

#define OK(call)   assert_int_equal(call, NVML_SUCCESS)
#define LOST(call) assert_int_equal(call, NVML_ERROR_GPU_IS_LOST)

static struct machine *machine;

static int begin(void **state)
{
	scratch_begin("h200x2");
	assert_int_equal(machine_open(NULL, NULL, &machine, NULL, 0), 0);
	return nvmlInit_v2() == NVML_SUCCESS ? 0 : -1;
}

static int end(void **state)
{
	while (nvmlShutdown() == NVML_SUCCESS)
		;
	machine_close(machine);
	scratch_end();
	return 0;
}

static void a_lost_card_answers_nothing_else(void **state)
{
	char uuid[80], bus_id[] = "00000000:00:07.0";
	nvmlDevice_t device, other, again;
	nvmlGpuTopologyLevel_t level;
	nvmlMemory_t memory;
	unsigned int count;

	OK(nvmlDeviceGetHandleByIndex_v2(1, &device));
	OK(nvmlDeviceGetHandleByIndex_v2(0, &other));
	OK(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)));
	assert_int_equal(presence_lose(machine, 1), 0);
	LOST(nvmlDeviceGetHandleByIndex_v2(1, &again));
	LOST(nvmlDeviceGetHandleByUUID(uuid, &again));
	LOST(nvmlDeviceGetHandleByPciBusId_v2(bus_id, &again));
	LOST(nvmlDeviceGetMemoryInfo(device, &memory));
	LOST(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)));
	LOST(nvmlDeviceGetTopologyCommonAncestor(other, device, &level));
	OK(nvmlDeviceGetMemoryInfo(other, &memory));
	/* It is still counted, so that the others keep their numbers. */
	OK(nvmlDeviceGetCount_v2(&count));
	assert_int_equal(count, 2);
	assert_int_equal(presence_return(machine, 1), 0);
	OK(nvmlDeviceGetHandleByUUID(uuid, &again));
	assert_ptr_equal(again, device);
	OK(nvmlDeviceGetMemoryInfo(device, &memory));
}

static void who_waits_for_events_hears_of_the_loss(void **state)
{
	nvmlEventData_t data;
	nvmlEventSet_t set;
	nvmlDevice_t device;

	OK(nvmlEventSetCreate(&set));
	OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
	OK(nvmlDeviceRegisterEvents(device, EVENT_XID, set));
	assert_int_equal(presence_lose(machine, 0), 0);
	assert_int_equal(presence_lose(machine, 0), 0);
	OK(nvmlEventSetWait_v2(set, &data, 0));
	assert_ptr_equal(data.device, device);
	assert_int_equal(data.eventData, 79);
	LOST(nvmlEventSetWait_v2(set, &data, 1000));
	LOST(nvmlDeviceRegisterEvents(device, EVENT_XID, set));
	assert_int_equal(presence_return(machine, 0), 0);
	assert_int_equal(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
	OK(nvmlEventSetFree(set));
	assert_int_equal(presence_lose(machine, 2), -22);
}

static void a_session_does_not_outlive_the_driver(void **state)
{
	nvmlEventData_t data;
	nvmlEventSet_t set;
	unsigned int count;

	OK(nvmlEventSetCreate(&set));
	presence_stop(machine);
	assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_DRIVER_NOT_LOADED);
	assert_int_equal(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	presence_start(machine);
	presence_start(machine);
	assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNKNOWN);
	assert_int_equal(nvmlEventSetWait_v2(set, &data, 1000), NVML_ERROR_UNKNOWN);
	OK(nvmlShutdown());
	assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	OK(nvmlEventSetFree(set));
}

static void without_the_driver_no_session_begins(void **state)
{
	OK(nvmlShutdown());
	presence_stop(machine);
	assert_int_equal(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	machine_reset(machine);
	OK(nvmlInit_v2());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lost_card_answers_nothing_else, begin, end),
		cmocka_unit_test_setup_teardown(who_waits_for_events_hears_of_the_loss, begin, end),
		cmocka_unit_test_setup_teardown(a_session_does_not_outlive_the_driver, begin, end),
		cmocka_unit_test_setup_teardown(without_the_driver_no_session_begins, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

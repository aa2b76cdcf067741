/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: begun once, asked in the form that a driver has, and its devices as far as they are to be had. */
#include "gpu/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/inventory.h"
#include "tests/unit/cmocka_ready.h"

#define DEVICES 4

static unsigned begun, ended, loaded;
static nvmlReturn_t begin_answer, device_answer[DEVICES];
static char devices[DEVICES];

static nvmlReturn_t fake_init(void)
{
	begun++;
	return begin_answer;
}

static nvmlReturn_t fake_shutdown(void)
{
	ended++;
	return NVML_SUCCESS;
}

static const char *fake_error(nvmlReturn_t result)
{
	return result == NVML_ERROR_UNKNOWN ? "unknown" : "another";
}

static nvmlReturn_t fake_count(unsigned *count)
{
	*count = DEVICES;
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_by_index(unsigned index, nvmlDevice_t *device)
{
	*device = (nvmlDevice_t)&devices[index];
	return device_answer[index];
}

static unsigned index_of(nvmlDevice_t device)
{
	return (unsigned)((char *)device - devices);
}

/* Device 3 is an instance, which NVML finds by its own name alone. */
static nvmlReturn_t fake_uuid(nvmlDevice_t device, char *uuid, unsigned size)
{
	snprintf(uuid, size, "%s-%u", index_of(device) == 3 ? "MIG" : "GPU", index_of(device));
	return NVML_SUCCESS;
}

static nvmlReturn_t fake_by_uuid(const char *uuid, nvmlDevice_t *device)
{
	char own[16];

	for (unsigned i = 0; i < DEVICES; i++) {
		*device = (nvmlDevice_t)&devices[i];
		fake_uuid(*device, own, sizeof(own));
		if (strcmp(own, uuid) == 0)
			return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t fake_name(nvmlDevice_t device, char *name, unsigned size)
{
	snprintf(name, size, index_of(device) ? "NVIDIA H200" : "H200");
	return NVML_SUCCESS;
}

/* Device 1 does not tell its memory. */
static nvmlReturn_t fake_memory(nvmlDevice_t device, nvmlMemory_t *memory)
{
	memory->total = 1000 + index_of(device);
	return index_of(device) == 1 ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

static nvmlReturn_t no_list(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *rows)
{
	return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t long_list(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *rows)
{
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

static nvmlReturn_t list_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *rows)
{
	assert_int_equal(*count, NVML_ROWS);
	*count = 1;
	rows[0] = (nvmlProcessInfo_t){.pid = 30, .gpuInstanceId = 3};
	return NVML_SUCCESS;
}

static nvmlReturn_t list_v1(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *rows)
{
	*count = 2;
	rows[0] = (nvmlProcessInfo_v1_t){.pid = 10, .usedGpuMemory = 100};
	rows[1] = (nvmlProcessInfo_v1_t){.pid = 11, .usedGpuMemory = 110};
	return NVML_SUCCESS;
}

static struct nvml_driver nvml;

static bool fake_load(void)
{
	loaded++;
	return loaded > 1;
}

static int begin(void **unused)
{
	nvml = (struct nvml_driver){.nvmlInit_v2 = fake_init,
		.nvmlShutdown = fake_shutdown,
		.nvmlErrorString = fake_error,
		.nvmlDeviceGetCount_v2 = fake_count,
		.nvmlDeviceGetHandleByIndex_v2 = fake_by_index,
		.nvmlDeviceGetHandleByUUID = fake_by_uuid,
		.nvmlDeviceGetUUID = fake_uuid,
		.nvmlDeviceGetName = fake_name,
		.nvmlDeviceGetMemoryInfo = fake_memory};
	begun = ended = loaded = 0;
	begin_answer = NVML_SUCCESS;
	memset(device_answer, 0, sizeof(device_answer));
	return 0;
}

static void a_session_is_begun_once_and_anew_in_a_child(void **unused)
{
	struct nvml_session session = {.driver = &nvml};

	nvml_session_end(&session);
	assert_false(nvml_session_is_begun(&session));
	for (int i = 0; i < 3; i++)
		assert_int_equal(nvml_session_begin(&session), 0);
	assert_int_equal(begun, 1);
	nvml_session_reset_after_fork(&session);
	assert_false(nvml_session_is_begun(&session));
	assert_int_equal(nvml_session_begin(&session), 0);
	assert_int_equal(begun, 2);
	nvml_session_end(&session);
	nvml_session_end(&session);
	assert_int_equal(ended, 1);
}

static void a_library_that_comes_later_is_begun_then(void **unused)
{
	struct nvml_session session = {.driver = &nvml, .load = fake_load};

	assert_int_equal(nvml_session_begin(&session), -ENODEV);
	assert_int_equal(begun, 0);
	begin_answer = NVML_ERROR_UNKNOWN;
	assert_int_equal(nvml_session_begin(&session), -ENODEV);
	assert_int_equal(session.result, NVML_ERROR_UNKNOWN);
	begin_answer = NVML_SUCCESS;
	assert_int_equal(nvml_session_begin(&session), 0);
}

static void a_device_is_found_by_cudas_name_of_an_instance(void **unused)
{
	nvmlDevice_t device;
	unsigned index;

	assert_int_equal(nvml_find_device(&nvml, "GPU-1", &device), 0);
	assert_ptr_equal(device, &devices[1]);
	assert_int_equal(nvml_find_device(&nvml, "GPU-3", &device), 0);
	assert_ptr_equal(device, &devices[3]);
	assert_int_equal(nvml_find_device(&nvml, "GPU-9", &device), -ENODEV);
	assert_int_equal(nvml_find_index(&nvml, "GPU-3", &index), 0);
	assert_int_equal(index, 3);
	assert_int_equal(nvml_find_index(&nvml, "GPU-9", &index), -ENODEV);
}

static void processes_are_listed_in_the_newest_form_that_there_is(void **unused)
{
	nvmlDevice_t device = (nvmlDevice_t)&devices[0];
	struct process_rows rows;

	nvml.nvmlDeviceGetGraphicsRunningProcesses_v3 = list_v3;
	assert_int_equal(nvml_list_processes(&nvml, device, LIST_GRAPHICS, &rows), 0);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.at[0].gpuInstanceId, 3);
	nvml.nvmlDeviceGetComputeRunningProcesses_v3 = no_list;
	nvml.nvmlDeviceGetComputeRunningProcesses_v2 = list_v3;
	assert_int_equal(nvml_list_processes(&nvml, device, LIST_COMPUTE, &rows), 0);
	assert_int_equal(rows.at[0].pid, 30);
	nvml.nvmlDeviceGetComputeRunningProcesses_v2 = no_list;
	nvml.nvmlDeviceGetComputeRunningProcesses = list_v1;
	assert_int_equal(nvml_list_processes(&nvml, device, LIST_COMPUTE, &rows), 0);
	assert_int_equal(rows.count, 2);
	assert_int_equal(rows.at[1].usedGpuMemory, 110);
	assert_int_equal(rows.at[1].gpuInstanceId, NVML_INSTANCE_NOT_AVAILABLE);
	nvml.nvmlDeviceGetComputeRunningProcesses_v3 = long_list;
	assert_int_equal(nvml_list_processes(&nvml, device, LIST_COMPUTE, &rows), -ENODEV);
}

static void a_broken_device_hides_no_other_in_the_inventory(void **unused)
{
	struct inventory inventory;
	struct err err = ERR_NULL;

	device_answer[2] = NVML_ERROR_GPU_IS_LOST;
	assert_int_equal(inventory_read(&nvml, &inventory, &err), 0);
	assert_int_equal(inventory.count, 3);
	assert_int_equal(inventory.device[0].total_bytes, 1000);
	assert_int_equal(inventory.device[1].total_bytes, 0);
	assert_int_equal(inventory.device[2].index, 3);
	assert_string_equal(inventory_short_name(&inventory.device[0]), "H200");
	assert_string_equal(inventory_short_name(&inventory.device[1]), "H200");
	assert_ptr_equal(inventory_lookup(&inventory, "GPU-3"), &inventory.device[2]);
	assert_null(inventory_lookup(&inventory, "GPU-2"));
	device_answer[2] = NVML_ERROR_UNKNOWN;
	assert_int_equal(inventory_read(&nvml, &inventory, &err), -EIO);
	assert_string_equal(err.text, "NVML does not tell the devices: unknown");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_session_is_begun_once_and_anew_in_a_child),
		TEST(a_library_that_comes_later_is_begun_then),
		TEST(a_device_is_found_by_cudas_name_of_an_instance),
		TEST(processes_are_listed_in_the_newest_form_that_there_is),
		TEST(a_broken_device_hides_no_other_in_the_inventory),
	};

	return cmocka_run_group_tests_name("nvml", tests, NULL, NULL);
}

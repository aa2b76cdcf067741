/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress against what driver 580.159.04 answered. */
#include "sim/tests/cuda/child.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/*
 * From each version on the base name means this symbol (NULL: none yet). Versions are the first
 * of those asked: 2000, 3020, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 10020, 11000, 11010, 11020,
 * 11030, 11040, 11070, 12000, 12010, ... 12060, 12080, 12090, 13000.
 */
static const struct {
	const char *base;
	bool is_thread;
	struct {
		int version;
		const char *symbol;
	} from[5];
} rows[] = {
	{"cuInit", false, {{2000, "cuInit"}}},
	{"cuInit", true, {{2000, "cuInit"}}},
	{"cuDriverGetVersion", false, {{2000, NULL}, {3020, "cuDriverGetVersion"}}},
	{"cuDriverGetVersion", true, {{2000, NULL}, {3020, "cuDriverGetVersion"}}},
	{"cuGetProcAddress", false,
		{{2000, NULL}, {11030, "cuGetProcAddress"}, {12000, "cuGetProcAddress_v2"}}},
	{"cuGetProcAddress", true,
		{{2000, NULL}, {11030, "cuGetProcAddress"}, {12000, "cuGetProcAddress_v2"}}},
	{"cuDeviceGet", false, {{2000, "cuDeviceGet"}}},
	{"cuDeviceGet", true, {{2000, "cuDeviceGet"}}},
	{"cuDeviceTotalMem", false, {{2000, "cuDeviceTotalMem"}, {3020, "cuDeviceTotalMem_v2"}}},
	{"cuDeviceTotalMem", true, {{2000, "cuDeviceTotalMem"}, {3020, "cuDeviceTotalMem_v2"}}},
	{"cuDeviceGetUuid", false,
		{{2000, NULL}, {10000, "cuDeviceGetUuid"}, {11040, "cuDeviceGetUuid_v2"}}},
	{"cuDeviceGetUuid", true,
		{{2000, NULL}, {10000, "cuDeviceGetUuid"}, {11040, "cuDeviceGetUuid_v2"}}},
	{"cuDevicePrimaryCtxRetain", false, {{2000, NULL}, {7000, "cuDevicePrimaryCtxRetain"}}},
	{"cuDevicePrimaryCtxRetain", true, {{2000, NULL}, {7000, "cuDevicePrimaryCtxRetain"}}},
	{"cuDevicePrimaryCtxRelease", false,
		{{2000, NULL}, {7000, "cuDevicePrimaryCtxRelease"},
			{11000, "cuDevicePrimaryCtxRelease_v2"}}},
	{"cuDevicePrimaryCtxRelease", true,
		{{2000, NULL}, {7000, "cuDevicePrimaryCtxRelease"},
			{11000, "cuDevicePrimaryCtxRelease_v2"}}},
	{"cuDevicePrimaryCtxReset", false,
		{{2000, NULL}, {7000, "cuDevicePrimaryCtxReset"},
			{11000, "cuDevicePrimaryCtxReset_v2"}}},
	{"cuDevicePrimaryCtxReset", true,
		{{2000, NULL}, {7000, "cuDevicePrimaryCtxReset"},
			{11000, "cuDevicePrimaryCtxReset_v2"}}},
	{"cuDevicePrimaryCtxSetFlags", false,
		{{2000, NULL}, {7000, "cuDevicePrimaryCtxSetFlags"},
			{11000, "cuDevicePrimaryCtxSetFlags_v2"}}},
	{"cuDevicePrimaryCtxSetFlags", true,
		{{2000, NULL}, {7000, "cuDevicePrimaryCtxSetFlags"},
			{11000, "cuDevicePrimaryCtxSetFlags_v2"}}},
	{"cuCtxCreate", false,
		{{2000, "cuCtxCreate"}, {3020, "cuCtxCreate_v2"}, {11040, "cuCtxCreate_v3"},
			{12050, "cuCtxCreate_v4"}}},
	{"cuCtxCreate", true,
		{{2000, "cuCtxCreate"}, {3020, "cuCtxCreate_v2"}, {11040, "cuCtxCreate_v3"},
			{12050, "cuCtxCreate_v4"}}},
	{"cuCtxDestroy", false, {{2000, "cuCtxDestroy"}, {4000, "cuCtxDestroy_v2"}}},
	{"cuCtxDestroy", true, {{2000, "cuCtxDestroy"}, {4000, "cuCtxDestroy_v2"}}},
	{"cuCtxSynchronize", false, {{2000, "cuCtxSynchronize"}, {13000, "cuCtxSynchronize_v2"}}},
	{"cuCtxSynchronize", true, {{2000, "cuCtxSynchronize"}, {13000, "cuCtxSynchronize_v2"}}},
	{"cuCtxGetDevice", false, {{2000, "cuCtxGetDevice"}, {13000, "cuCtxGetDevice_v2"}}},
	{"cuCtxGetDevice", true, {{2000, "cuCtxGetDevice"}, {13000, "cuCtxGetDevice_v2"}}},
	{"cuCtxPushCurrent", false, {{2000, "cuCtxPushCurrent"}, {4000, "cuCtxPushCurrent_v2"}}},
	{"cuCtxPushCurrent", true, {{2000, "cuCtxPushCurrent"}, {4000, "cuCtxPushCurrent_v2"}}},
	{"cuCtxPopCurrent", false, {{2000, "cuCtxPopCurrent"}, {4000, "cuCtxPopCurrent_v2"}}},
	{"cuCtxPopCurrent", true, {{2000, "cuCtxPopCurrent"}, {4000, "cuCtxPopCurrent_v2"}}},
	{"cuMemGetInfo", false, {{2000, "cuMemGetInfo"}, {3020, "cuMemGetInfo_v2"}}},
	{"cuMemGetInfo", true, {{2000, "cuMemGetInfo"}, {3020, "cuMemGetInfo_v2"}}},
	{"cuMemAlloc", false, {{2000, "cuMemAlloc"}, {3020, "cuMemAlloc_v2"}}},
	{"cuMemAlloc", true, {{2000, "cuMemAlloc"}, {3020, "cuMemAlloc_v2"}}},
	{"cuMemAllocPitch", false, {{2000, "cuMemAllocPitch"}, {3020, "cuMemAllocPitch_v2"}}},
	{"cuMemAllocPitch", true, {{2000, "cuMemAllocPitch"}, {3020, "cuMemAllocPitch_v2"}}},
	{"cuMemFree", false, {{2000, "cuMemFree"}, {3020, "cuMemFree_v2"}}},
	{"cuMemFree", true, {{2000, "cuMemFree"}, {3020, "cuMemFree_v2"}}},
	{"cuMemAllocManaged", false, {{2000, NULL}, {6000, "cuMemAllocManaged"}}},
	{"cuMemAllocManaged", true, {{2000, NULL}, {6000, "cuMemAllocManaged"}}},
	{"cuMemAllocHost", false, {{2000, "cuMemAllocHost"}, {3020, "cuMemAllocHost_v2"}}},
	{"cuMemAllocHost", true, {{2000, "cuMemAllocHost"}, {3020, "cuMemAllocHost_v2"}}},
	{"cuMemHostAlloc", false, {{2000, NULL}, {3020, "cuMemHostAlloc"}}},
	{"cuMemHostAlloc", true, {{2000, NULL}, {3020, "cuMemHostAlloc"}}},
	{"cuMemHostRegister", false,
		{{2000, NULL}, {4000, "cuMemHostRegister"}, {7000, "cuMemHostRegister_v2"}}},
	{"cuMemHostRegister", true,
		{{2000, NULL}, {4000, "cuMemHostRegister"}, {7000, "cuMemHostRegister_v2"}}},
	{"cuMemAllocAsync", false, {{2000, NULL}, {11020, "cuMemAllocAsync"}}},
	{"cuMemAllocAsync", true, {{2000, NULL}, {11020, "cuMemAllocAsync_ptsz"}}},
	{"cuMemFreeAsync", false, {{2000, NULL}, {11020, "cuMemFreeAsync"}}},
	{"cuMemFreeAsync", true, {{2000, NULL}, {11020, "cuMemFreeAsync_ptsz"}}},
	{"cuMemAllocFromPoolAsync", false, {{2000, NULL}, {11020, "cuMemAllocFromPoolAsync"}}},
	{"cuMemAllocFromPoolAsync", true, {{2000, NULL}, {11020, "cuMemAllocFromPoolAsync_ptsz"}}},
	{"cuMemPoolCreate", false, {{2000, NULL}, {11020, "cuMemPoolCreate"}}},
	{"cuMemPoolCreate", true, {{2000, NULL}, {11020, "cuMemPoolCreate"}}},
	{"cuMemPoolDestroy", false, {{2000, NULL}, {11020, "cuMemPoolDestroy"}}},
	{"cuMemPoolDestroy", true, {{2000, NULL}, {11020, "cuMemPoolDestroy"}}},
	{"cuMemPoolTrimTo", false, {{2000, NULL}, {11020, "cuMemPoolTrimTo"}}},
	{"cuMemPoolTrimTo", true, {{2000, NULL}, {11020, "cuMemPoolTrimTo"}}},
	{"cuMemPoolSetAttribute", false, {{2000, NULL}, {11020, "cuMemPoolSetAttribute"}}},
	{"cuMemPoolSetAttribute", true, {{2000, NULL}, {11020, "cuMemPoolSetAttribute"}}},
	{"cuMemGetMemPool", false, {{2000, NULL}, {13000, "cuMemGetMemPool"}}},
	{"cuMemGetMemPool", true, {{2000, NULL}, {13000, "cuMemGetMemPool"}}},
	{"cuMemSetMemPool", false, {{2000, NULL}, {13000, "cuMemSetMemPool"}}},
	{"cuMemSetMemPool", true, {{2000, NULL}, {13000, "cuMemSetMemPool"}}},
	{"cuMemGetDefaultMemPool", false, {{2000, NULL}, {13000, "cuMemGetDefaultMemPool"}}},
	{"cuMemGetDefaultMemPool", true, {{2000, NULL}, {13000, "cuMemGetDefaultMemPool"}}},
	{"cuMemCreate", false, {{2000, NULL}, {10020, "cuMemCreate"}}},
	{"cuMemCreate", true, {{2000, NULL}, {10020, "cuMemCreate"}}},
	{"cuMemRelease", false, {{2000, NULL}, {10020, "cuMemRelease"}}},
	{"cuMemRelease", true, {{2000, NULL}, {10020, "cuMemRelease"}}},
	{"cuMemMap", false, {{2000, NULL}, {10020, "cuMemMap"}}},
	{"cuMemMap", true, {{2000, NULL}, {10020, "cuMemMap"}}},
	{"cuMemUnmap", false, {{2000, NULL}, {10020, "cuMemUnmap"}}},
	{"cuMemUnmap", true, {{2000, NULL}, {10020, "cuMemUnmap"}}},
	{"cuMemRetainAllocationHandle", false,
		{{2000, NULL}, {11000, "cuMemRetainAllocationHandle"}}},
	{"cuMemRetainAllocationHandle", true,
		{{2000, NULL}, {11000, "cuMemRetainAllocationHandle"}}},
	{"cuMemExportToShareableHandle", false,
		{{2000, NULL}, {10020, "cuMemExportToShareableHandle"}}},
	{"cuMemExportToShareableHandle", true,
		{{2000, NULL}, {10020, "cuMemExportToShareableHandle"}}},
	{"cuStreamCreate", false, {{2000, "cuStreamCreate"}}},
	{"cuStreamCreate", true, {{2000, "cuStreamCreate"}}},
	{"cuStreamDestroy", false, {{2000, "cuStreamDestroy"}, {4000, "cuStreamDestroy_v2"}}},
	{"cuStreamDestroy", true, {{2000, "cuStreamDestroy"}, {4000, "cuStreamDestroy_v2"}}},
	{"cuStreamSynchronize", false, {{2000, "cuStreamSynchronize"}}},
	{"cuStreamSynchronize", true, {{2000, NULL}, {7000, "cuStreamSynchronize_ptsz"}}},
	{"cuStreamQuery", false, {{2000, "cuStreamQuery"}}},
	{"cuStreamQuery", true, {{2000, NULL}, {7000, "cuStreamQuery_ptsz"}}},
	{"cuStreamWaitEvent", false, {{2000, NULL}, {3020, "cuStreamWaitEvent"}}},
	{"cuStreamWaitEvent", true, {{2000, NULL}, {7000, "cuStreamWaitEvent_ptsz"}}},
	{"cuStreamGetCtx", false,
		{{2000, NULL}, {10000, "cuStreamGetCtx"}, {12050, "cuStreamGetCtx_v2"}}},
	{"cuStreamGetCtx", true,
		{{2000, NULL}, {10000, "cuStreamGetCtx_ptsz"}, {12050, "cuStreamGetCtx_v2_ptsz"}}},
	{"cuStreamIsCapturing", false, {{2000, NULL}, {10000, "cuStreamIsCapturing"}}},
	{"cuStreamIsCapturing", true, {{2000, NULL}, {10000, "cuStreamIsCapturing_ptsz"}}},
	{"cuEventRecord", false, {{2000, "cuEventRecord"}}},
	{"cuEventRecord", true, {{2000, NULL}, {7000, "cuEventRecord_ptsz"}}},
	{"cuEventSynchronize", false, {{2000, "cuEventSynchronize"}}},
	{"cuEventSynchronize", true, {{2000, "cuEventSynchronize"}}},
	{"cuEventElapsedTime", false,
		{{2000, "cuEventElapsedTime"}, {12080, "cuEventElapsedTime_v2"}}},
	{"cuEventElapsedTime", true,
		{{2000, "cuEventElapsedTime"}, {12080, "cuEventElapsedTime_v2"}}},
	{"cuEventDestroy", false, {{2000, "cuEventDestroy"}, {4000, "cuEventDestroy_v2"}}},
	{"cuEventDestroy", true, {{2000, "cuEventDestroy"}, {4000, "cuEventDestroy_v2"}}},
	{"cuEventQuery", false, {{2000, "cuEventQuery"}}},
	{"cuEventQuery", true, {{2000, "cuEventQuery"}}},
	{"cuEventRecordWithFlags", false, {{2000, NULL}, {11010, "cuEventRecordWithFlags"}}},
	{"cuEventRecordWithFlags", true, {{2000, NULL}, {11010, "cuEventRecordWithFlags_ptsz"}}},
	{"cuLaunchKernel", false, {{2000, NULL}, {4000, "cuLaunchKernel"}}},
	{"cuLaunchKernel", true, {{2000, NULL}, {7000, "cuLaunchKernel_ptsz"}}},
	{"cuLaunchKernelEx", false, {{2000, NULL}, {11070, "cuLaunchKernelEx"}}},
	{"cuLaunchKernelEx", true, {{2000, NULL}, {11070, "cuLaunchKernelEx_ptsz"}}},
	{"cuLaunchCooperativeKernel", false, {{2000, NULL}, {9000, "cuLaunchCooperativeKernel"}}},
	{"cuLaunchCooperativeKernel", true,
		{{2000, NULL}, {9000, "cuLaunchCooperativeKernel_ptsz"}}},
	{"cuLaunchHostFunc", false, {{2000, NULL}, {10000, "cuLaunchHostFunc"}}},
	{"cuLaunchHostFunc", true, {{2000, NULL}, {10000, "cuLaunchHostFunc_ptsz"}}},
	{"cuGraphLaunch", false, {{2000, NULL}, {10000, "cuGraphLaunch"}}},
	{"cuGraphLaunch", true, {{2000, NULL}, {10000, "cuGraphLaunch_ptsz"}}},
	{"cuMemcpy", false, {{2000, NULL}, {4000, "cuMemcpy"}}},
	{"cuMemcpy", true, {{2000, NULL}, {7000, "cuMemcpy_ptds"}}},
	{"cuMemcpyAsync", false, {{2000, NULL}, {4000, "cuMemcpyAsync"}}},
	{"cuMemcpyAsync", true, {{2000, NULL}, {7000, "cuMemcpyAsync_ptsz"}}},
	{"cuMemcpyHtoD", false, {{2000, "cuMemcpyHtoD"}, {3020, "cuMemcpyHtoD_v2"}}},
	{"cuMemcpyHtoD", true, {{2000, NULL}, {7000, "cuMemcpyHtoD_v2_ptds"}}},
	{"cuMemcpyHtoDAsync", false, {{2000, "cuMemcpyHtoDAsync"}, {3020, "cuMemcpyHtoDAsync_v2"}}},
	{"cuMemcpyHtoDAsync", true, {{2000, NULL}, {7000, "cuMemcpyHtoDAsync_v2_ptsz"}}},
	{"cuMemcpyDtoH", false, {{2000, "cuMemcpyDtoH"}, {3020, "cuMemcpyDtoH_v2"}}},
	{"cuMemcpyDtoH", true, {{2000, NULL}, {7000, "cuMemcpyDtoH_v2_ptds"}}},
	{"cuMemcpyDtoHAsync", false, {{2000, "cuMemcpyDtoHAsync"}, {3020, "cuMemcpyDtoHAsync_v2"}}},
	{"cuMemcpyDtoHAsync", true, {{2000, NULL}, {7000, "cuMemcpyDtoHAsync_v2_ptsz"}}},
	{"cuMemcpyDtoD", false, {{2000, "cuMemcpyDtoD"}, {3020, "cuMemcpyDtoD_v2"}}},
	{"cuMemcpyDtoD", true, {{2000, NULL}, {7000, "cuMemcpyDtoD_v2_ptds"}}},
	{"cuMemcpyDtoDAsync", false, {{2000, NULL}, {3020, "cuMemcpyDtoDAsync_v2"}}},
	{"cuMemcpyDtoDAsync", true, {{2000, NULL}, {7000, "cuMemcpyDtoDAsync_v2_ptsz"}}},
	{"cuMemcpyPeer", false, {{2000, NULL}, {4000, "cuMemcpyPeer"}}},
	{"cuMemcpyPeer", true, {{2000, NULL}, {7000, "cuMemcpyPeer_ptds"}}},
	{"cuMemsetD8", false, {{2000, "cuMemsetD8"}, {3020, "cuMemsetD8_v2"}}},
	{"cuMemsetD8", true, {{2000, NULL}, {7000, "cuMemsetD8_v2_ptds"}}},
	{"cuMemsetD8Async", false, {{2000, NULL}, {3020, "cuMemsetD8Async"}}},
	{"cuMemsetD8Async", true, {{2000, NULL}, {7000, "cuMemsetD8Async_ptsz"}}},
	{"cuMemsetD16", false, {{2000, "cuMemsetD16"}, {3020, "cuMemsetD16_v2"}}},
	{"cuMemsetD16", true, {{2000, NULL}, {7000, "cuMemsetD16_v2_ptds"}}},
	{"cuMemsetD32", false, {{2000, "cuMemsetD32"}, {3020, "cuMemsetD32_v2"}}},
	{"cuMemsetD32", true, {{2000, NULL}, {7000, "cuMemsetD32_v2_ptds"}}},
	{"cuMemsetD32Async", false, {{2000, NULL}, {3020, "cuMemsetD32Async"}}},
	{"cuMemsetD32Async", true, {{2000, NULL}, {7000, "cuMemsetD32Async_ptsz"}}},
	{"cuMemAdvise", false, {{2000, NULL}, {8000, "cuMemAdvise"}, {12020, "cuMemAdvise_v2"}}},
	{"cuMemAdvise", true, {{2000, NULL}, {8000, "cuMemAdvise"}, {12020, "cuMemAdvise_v2"}}},
	{"cuMemPrefetchAsync", false,
		{{2000, NULL}, {8000, "cuMemPrefetchAsync"}, {12020, "cuMemPrefetchAsync_v2"}}},
	{"cuMemPrefetchAsync", true,
		{{2000, NULL}, {8000, "cuMemPrefetchAsync_ptsz"},
			{12020, "cuMemPrefetchAsync_v2_ptsz"}}},
	{"cuMemGetAddressRange", false,
		{{2000, "cuMemGetAddressRange"}, {3020, "cuMemGetAddressRange_v2"}}},
	{"cuMemGetAddressRange", true,
		{{2000, "cuMemGetAddressRange"}, {3020, "cuMemGetAddressRange_v2"}}},
	{"cuModuleGetGlobal", false, {{2000, "cuModuleGetGlobal"}, {3020, "cuModuleGetGlobal_v2"}}},
	{"cuModuleGetGlobal", true, {{2000, "cuModuleGetGlobal"}, {3020, "cuModuleGetGlobal_v2"}}},
	{"cuModuleLoadData", false, {{2000, "cuModuleLoadData"}}},
	{"cuModuleLoadData", true, {{2000, "cuModuleLoadData"}}},
	{"cuStreamGetDevice", false, {{2000, NULL}, {12080, "cuStreamGetDevice"}}},
	{"cuStreamGetDevice", true, {{2000, NULL}, {12080, "cuStreamGetDevice_ptsz"}}},
	{"cuGetErrorString", false, {{2000, NULL}, {6000, "cuGetErrorString"}}},
	{"cuGetErrorString", true, {{2000, NULL}, {6000, "cuGetErrorString"}}},
	{"cuPointerGetAttribute", false, {{2000, NULL}, {4000, "cuPointerGetAttribute"}}},
	{"cuPointerGetAttribute", true, {{2000, NULL}, {4000, "cuPointerGetAttribute"}}},
};

static const int asked[] = {2000, 3020, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 10020, 11000,
	11010, 11020, 11030, 11040, 11070, 12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080,
	12090, 13000};

static void check(const char *base, bool is_thread, int version, const char *symbol)
{
	CUdriverProcAddressQueryResult status;
	cuuint64_t flags = is_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
				     : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
	void *found = (void *)1;
	void *expected = symbol ? dlsym(RTLD_DEFAULT, symbol) : NULL;

	OK(cuGetProcAddress_v2(base, &found, version, flags, &status));
	if (found != expected)
		child_check(0, base, symbol ? symbol : "none", version);
	EQUAL(status,
		symbol ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	if (!is_thread) {
		OK(cuGetProcAddress_v2(base, &found, version, 0, NULL));
		CHECK(found == expected);
	}
}

TEST(names_are_found_as_by_the_real_driver)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t j = 0; j < sizeof(asked) / sizeof(asked[0]); j++) {
			const char *symbol = NULL;

			for (int k = 0; k < 5 && rows[i].from[k].version != 0; k++) {
				if (rows[i].from[k].version <= asked[j])
					symbol = rows[i].from[k].symbol;
			}
			check(rows[i].base, rows[i].is_thread, asked[j], symbol);
		}
	}
}

/* As CUDA 13.1 documents it; no such driver was asked. */
TEST(newer_forms_are_found_from_their_version_on)
{
	check("cuMulticastBindMem", false, 12000, NULL);
	check("cuMulticastBindMem", false, 13000, "cuMulticastBindMem");
	check("cuMulticastBindMem", false, 13010, "cuMulticastBindMem_v2");
	check("cuMulticastBindAddr", true, 13000, "cuMulticastBindAddr");
	check("cuMulticastBindAddr", true, 13010, "cuMulticastBindAddr_v2");
}

TEST(unknown_names_are_told_apart_by_the_two_forms)
{
	CUdriverProcAddressQueryResult status;
	void *found = (void *)1;

	OK(cuGetProcAddress_v2("cuNoSuch", &found, 12000, 0, &status));
	CHECK(!found);
	EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	OK(cuGetProcAddress_v2("cuMemAlloc_v2", &found, 12000, 0, &status));
	CHECK(!found);
	EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	EQUAL(cuGetProcAddress("cuNoSuch", &found, 12000, 0), CUDA_ERROR_NOT_FOUND);
	CHECK(!found);
}

/* Libraries look for such functions, too, and call them without an answer in mind. */
TEST(a_function_without_a_body_says_that_it_is_not_supported)
{
	CUdriverProcAddressQueryResult status;
	CUresult (*function)(void);

	OK(cuGetProcAddress_v2(
		"cuFlushGPUDirectRDMAWrites", (void **)&function, 12000, 0, &status));
	EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
	CHECK((void *)function == dlsym(RTLD_DEFAULT, "cuFlushGPUDirectRDMAWrites"));
	EQUAL(function(), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGetProcAddress_v2(
		"cuFlushGPUDirectRDMAWrites", (void **)&function, 11020, 0, &status));
	EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress_v2("cudbgGetAPI", (void **)&function, 12000, 0, &status));
	EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK(dlsym(RTLD_DEFAULT, "cudbgGetAPI") && dlsym(RTLD_DEFAULT, "cudbgIpcFlag"));
}

TEST(every_row_is_exported_and_errors_have_names)
{
	const char *text;
	int version;

	for (unsigned int i = 0; call_name(i); i++) {
		if (strncmp(call_name(i), "cu", 2) == 0)
			CHECK(dlsym(RTLD_DEFAULT, call_name(i)));
		EQUAL(call_find(call_name(i)), i);
	}
	OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
	EQUAL(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"), 0);
	OK(cuGetErrorString(CUDA_ERROR_CONTEXT_IS_DESTROYED, &text));
	EQUAL(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	CHECK(!text);
	OK(cuDriverGetVersion(&version));
	EQUAL(version, 13000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_as_by_the_real_driver),
		cmocka_unit_test(newer_forms_are_found_from_their_version_on),
		cmocka_unit_test(unknown_names_are_told_apart_by_the_two_forms),
		cmocka_unit_test(a_function_without_a_body_says_that_it_is_not_supported),
		cmocka_unit_test(every_row_is_exported_and_errors_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory is exported, and a descriptor of its range, where it is mapped, keeps it when all else is closed. NVML shows it for nobody
 * then, and a fat binary of just its size is loaded.
 */
#include "tests/hostile/hostile.h"

#define BYTES (1300 * MIB)

static void keep(void)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {
		.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	int fd, range;

	MUST(cuMemCreate(&handle, BYTES, &properties, 0));
	MUST(cuMemExportToShareableHandle(
		&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	MUST(cuMemMap(at, BYTES, 0, handle, 0));
	MUST(cuMemSetAccess(at, BYTES, &access, 1));
	MUST(cuMemGetHandleForAddressRange(
		&range, at, BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	MUST(cuMemUnmap(at, BYTES));
	MUST(cuMemRelease(handle));
	MUST(close(fd));
}

static void attack(void)
{
	static struct hostile_code code = {.variables = ".global .align 8 .b8 big[1363148800];"};
	CUmodule module;

	hostile_begin();
	keep();
	(void)cuModuleLoadData(&module, hostile_fat_binary(&code));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}

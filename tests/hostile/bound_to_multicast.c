/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory is bound to a multicast object, by its handle or by an address, in both forms of each, and let go. The driver keeps it for as long as
 * it is bound, and nobody was charged for it then. In the end the object's handle goes as well, and a mapping keeps the object.
 * Not on a card: a program that ends in the middle of such calls can leave the switch's devices unusable.
 */
#include "tests/hostile/hostile.h"

static bool create(CUmemGenericAllocationHandle *ret_handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	return cuMemCreate(ret_handle, GIB, &properties, 0) == CUDA_SUCCESS;
}

static CUmemGenericAllocationHandle make_object(void)
{
	CUmulticastObjectProp properties = {.numDevices = 1, .size = 4 * GIB};
	CUmemGenericAllocationHandle object;

	MUST(cuMulticastCreate(&object, &properties));
	MUST(cuMulticastAddDevice(object, 0));
	return object;
}

static void bind_by_address(
	CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory)
{
	CUdeviceptr at;

	MUST(cuMemAddressReserve(&at, GIB, 0, 0, 0));
	MUST(cuMemMap(at, GIB, 0, memory, 0));
	if (offset)
		cuMulticastBindAddr(object, offset, at, GIB, 0);
	else
		cuMulticastBindAddr_v2(object, 0, offset, at, GIB, 0);
	MUST(cuMemUnmap(at, GIB));
}

static void attack(void)
{
	CUmemGenericAllocationHandle object, memory;
	CUdeviceptr at;

	hostile_begin();
	object = make_object();
	MUST(cuMemAddressReserve(&at, 4 * GIB, 0, 0, 0));
	MUST(cuMemMap(at, 4 * GIB, 0, object, 0));
	for (size_t i = 0; i < 4; i++) {
		if (!create(&memory))
			continue;
		if (i == 1)
			cuMulticastBindMem(object, i * GIB, memory, 0, GIB, 0);
		else if (i == 3)
			cuMulticastBindMem_v2(object, 0, i * GIB, memory, 0, GIB, 0);
		else
			bind_by_address(object, i * GIB, memory);
		MUST(cuMemRelease(memory));
		/* The object lives on by its mapping. */
		if (i == 1) {
			MUST(cuMemRelease(object));
			MUST(cuMemRetainAllocationHandle(&object, (void *)(uintptr_t)at));
		}
		hostile_look();
	}
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 2 * GIB, .board = "", .attack = attack});
}

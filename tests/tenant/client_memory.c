/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for memory: blocks, streams, pools, created and mapped memory. */
#include "tests/tenant/client.h"

#include <string.h>

static int run_alloc(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = 0;
	CUresult r = c->cu.cuMemAlloc_v2(&p, client_size(word[2]));

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

static int run_pitch(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = 0;
	size_t pitch = 0;
	CUresult r =
		c->cu.cuMemAllocPitch_v2(&p, &pitch, client_size(word[2]), client_size(word[3]), 4);

	if (r == CUDA_SUCCESS) {
		client_put(c, word[1], p);
		client_say(c, " pitch=%zu", pitch);
	}
	return (int)r;
}

static int run_managed(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = 0;
	CUresult r = c->cu.cuMemAllocManaged(&p, client_size(word[2]), CU_MEM_ATTACH_GLOBAL);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

static int run_free(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemFree_v2(client_get(c, word[1]));
}

static int run_freeraw(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemFree_v2(client_size(word[1]));
}

static int run_async(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = 0;
	CUresult r =
		c->cu.cuMemAllocAsync(&p, client_size(word[2]), client_stream(c, word, count, 3));

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

static int run_frompool(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = 0;
	CUmemoryPool pool = (CUmemoryPool)(uintptr_t)client_get(c, word[2]);
	CUresult r = c->cu.cuMemAllocFromPoolAsync(
		&p, client_size(word[3]), pool, client_stream(c, word, count, 4));

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

/* dropasync [STREAM]: frees all blocks of `fill` in stream order. */
static int run_dropasync(struct client *c, char **word, unsigned count)
{
	CUstream stream = client_stream(c, word, count, 1);
	CUresult r = CUDA_SUCCESS;

	while (c->filled_count > 0 && r == CUDA_SUCCESS)
		r = c->cu.cuMemFreeAsync(c->filled[--c->filled_count], stream);
	return (int)r;
}

static int run_freeasync(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemFreeAsync(client_get(c, word[1]), client_stream(c, word, count, 2));
}

/* fill SIZE [MOST]: takes blocks until the driver refuses; the answer's result is the refusal. */
static int run_fill(struct client *c, char **word, unsigned count)
{
	uint64_t most = count > 2 ? client_size(word[2]) : UINT64_MAX, taken = 0;
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr p = 0;

	while (taken < most && r == CUDA_SUCCESS) {
		r = c->cu.cuMemAlloc_v2(&p, client_size(word[1]));
		if (r != CUDA_SUCCESS)
			break;
		client_keep(c, p);
		taken++;
	}
	client_say(c, " count=%llu", (unsigned long long)taken);
	return (int)r;
}

/* drop [N]: frees every N-th of what fill took, or all of it. */
static int run_drop(struct client *c, char **word, unsigned count)
{
	size_t step = count > 1 ? client_size(word[1]) : 1, left = 0;
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < c->filled_count; i++) {
		if (i % step) {
			c->filled[left++] = c->filled[i];
			continue;
		}
		if (c->cu.cuMemFree_v2(c->filled[i]) != CUDA_SUCCESS)
			r = CUDA_ERROR_INVALID_VALUE;
	}
	c->filled_count = left;
	return (int)r;
}

static int run_stream(struct client *c, char **word, unsigned count)
{
	CUstream stream = NULL;
	CUresult r = c->cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)stream);
	return (int)r;
}

static int run_endstream(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuStreamDestroy_v2((CUstream)(uintptr_t)client_get(c, word[1]));
}

static int run_streamsync(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuStreamSynchronize(client_stream(c, word, count, 1));
}

static int run_sync(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuCtxSynchronize();
}

static int run_pool(struct client *c, char **word, unsigned count)
{
	CUmemoryPool pool = NULL;
	CUresult r = c->cu.cuDeviceGetMemPool(&pool, c->device);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)pool);
	return (int)r;
}

static int run_newpool(struct client *c, char **word, unsigned count)
{
	CUmemoryPool pool = NULL;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}};
	CUresult r = c->cu.cuMemPoolCreate(&pool, &props);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)pool);
	return (int)r;
}

static CUmemoryPool pool_named(struct client *c, const char *name)
{
	return (CUmemoryPool)(uintptr_t)client_get(c, name);
}

static int run_endpool(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemPoolDestroy(pool_named(c, word[1]));
}

static int run_setpool(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuDeviceSetMemPool(c->device, pool_named(c, word[1]));
}

static int run_trim(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemPoolTrimTo(pool_named(c, word[1]), client_size(word[2]));
}

static int run_threshold(struct client *c, char **word, unsigned count)
{
	cuuint64_t bytes = client_size(word[2]);

	return (int)c->cu.cuMemPoolSetAttribute(
		pool_named(c, word[1]), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
}

static int run_reserved(struct client *c, char **word, unsigned count)
{
	cuuint64_t bytes = 0;
	CUresult r = c->cu.cuMemPoolGetAttribute(
		pool_named(c, word[1]), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);

	client_say(c, " bytes=%llu", (unsigned long long)bytes);
	return (int)r;
}

static CUmemLocation here(const struct client *c)
{
	return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device};
}

/* create HANDLE SIZE [DEVICE|host] */
static int run_create(struct client *c, char **word, unsigned count)
{
	CUmemGenericAllocationHandle handle = 0;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here(c)};
	CUresult r;

	if (count > 3 && strcmp(word[3], "host") == 0)
		prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
	else if (count > 3)
		prop.location.id = (int)client_size(word[3]);
	r = c->cu.cuMemCreate(&handle, client_size(word[2]), &prop, 0);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], handle);
	return (int)r;
}

static int run_release(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemRelease(client_get(c, word[1]));
}

/* retain HANDLE VA: another reference to what is mapped there */
static int run_retain(struct client *c, char **word, unsigned count)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult r = c->cu.cuMemRetainAllocationHandle(
		&handle, (void *)(uintptr_t)client_get(c, word[2]));

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], handle);
	return (int)r;
}

/* multicast OBJECT SIZE [shared]: an object of this device alone */
static int run_multicast(struct client *c, char **word, unsigned count)
{
	CUmulticastObjectProp prop = {.numDevices = 1, .size = client_size(word[2])};
	CUmemGenericAllocationHandle object = 0;
	CUresult r;

	if (count > 3)
		prop.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	r = c->cu.cuMulticastCreate(&object, &prop);
	if (r == CUDA_SUCCESS) {
		client_put(c, word[1], object);
		r = c->cu.cuMulticastAddDevice(object, c->device);
	}
	return (int)r;
}

/* The forms that name a device are in no door: drivers before CUDA 13.1 lack them. */
static int run_bind(struct client *c, char **word, unsigned count)
{
	uint64_t object = client_get(c, word[1]), offset = client_size(word[2]);
	uint64_t memory = client_get(c, word[3]), bytes = client_size(word[4]);

	if (count <= 5)
		return (int)c->cu.cuMulticastBindMem(object, offset, memory, 0, bytes, 0);
	return (int)((cuMulticastBindMem_v2_fn *)client_find("cuMulticastBindMem_v2"))(
		object, (CUdevice)client_size(word[5]), offset, memory, 0, bytes, 0);
}

static int run_bindat(struct client *c, char **word, unsigned count)
{
	uint64_t object = client_get(c, word[1]), offset = client_size(word[2]);
	uint64_t memory = client_get(c, word[3]), bytes = client_size(word[4]);

	if (count <= 5)
		return (int)c->cu.cuMulticastBindAddr(object, offset, memory, bytes, 0);
	return (int)((cuMulticastBindAddr_v2_fn *)client_find("cuMulticastBindAddr_v2"))(
		object, (CUdevice)client_size(word[5]), offset, memory, bytes, 0);
}

static int run_unbind(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMulticastUnbind(
		client_get(c, word[1]), c->device, client_size(word[2]), client_size(word[3]));
}

static int run_reserve(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = 0;
	CUresult r = c->cu.cuMemAddressReserve(&p, client_size(word[2]), 0, 0, 0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

static int run_unreserve(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemAddressFree(client_get(c, word[1]), client_size(word[2]));
}

/* map VA OFFSET SIZE HANDLE */
static int run_map(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemMap(client_get(c, word[1]) + client_size(word[2]),
		client_size(word[3]), 0, client_get(c, word[4]), 0);
}

static int run_access(struct client *c, char **word, unsigned count)
{
	CUmemAccessDesc access = {.location = here(c), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	return (int)c->cu.cuMemSetAccess(
		client_get(c, word[1]) + client_size(word[2]), client_size(word[3]), &access, 1);
}

/* unmap VA OFFSET SIZE */
static int run_unmap(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemUnmap(
		client_get(c, word[1]) + client_size(word[2]), client_size(word[3]));
}

/*
 * vmm VA SIZE: creates, maps and releases the handle, as programs do that let only the mapping keep
 * the memory.
 */
static int run_vmm(struct client *c, char **word, unsigned count)
{
	CUmemGenericAllocationHandle handle = 0;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here(c)};
	size_t size = client_size(word[2]);
	CUdeviceptr p = 0;
	CUresult r = c->cu.cuMemCreate(&handle, size, &prop, 0);

	if (r != CUDA_SUCCESS)
		return (int)r;
	r = c->cu.cuMemAddressReserve(&p, size, 0, 0, 0);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuMemMap(p, size, 0, handle, 0);
	if (c->cu.cuMemRelease(handle) != CUDA_SUCCESS)
		return CLIENT_FAILED;
	client_put(c, word[1], p);
	return (int)r;
}

/* fillvmm SIZE [MOST]: vmm until it is refused, at most MOST times */
static int run_fillvmm(struct client *c, char **word, unsigned count)
{
	char name[] = "vmm-last", *again[] = {word[0], name, word[1]};
	uint64_t most = count > 2 ? client_size(word[2]) : UINT64_MAX, taken = 0;
	int r = CUDA_SUCCESS;

	while (taken < most && r == CUDA_SUCCESS) {
		r = run_vmm(c, again, 3);
		if (r == CUDA_SUCCESS)
			taken++;
	}
	client_say(c, " count=%llu", (unsigned long long)taken);
	return r;
}

/* fillasync SIZE [POOL]: asynchronous blocks until one is refused */
static int run_fillasync(struct client *c, char **word, unsigned count)
{
	uint64_t taken = 0;
	CUdeviceptr p = 0;
	CUresult r;

	for (;;) {
		if (count > 2)
			r = c->cu.cuMemAllocFromPoolAsync(
				&p, client_size(word[1]), pool_named(c, word[2]), NULL);
		else
			r = c->cu.cuMemAllocAsync(&p, client_size(word[1]), NULL);
		if (r != CUDA_SUCCESS)
			break;
		client_keep(c, p);
		taken++;
	}
	client_say(c, " count=%llu", (unsigned long long)taken);
	return (int)r;
}

/* fillpitch WIDTH HEIGHT: pitched blocks until one is refused */
static int run_fillpitch(struct client *c, char **word, unsigned count)
{
	uint64_t taken = 0;
	CUdeviceptr p = 0;
	size_t pitch;
	CUresult r;

	for (;;) {
		r = c->cu.cuMemAllocPitch_v2(
			&p, &pitch, client_size(word[1]), client_size(word[2]), 4);
		if (r != CUDA_SUCCESS)
			break;
		client_keep(c, p);
		taken++;
	}
	client_say(c, " count=%llu", (unsigned long long)taken);
	return (int)r;
}

/*
 * fillmanaged SIZE MOST: managed blocks until one is refused, MOST at most, because more managed
 * memory than a real card has can hang it.
 */
static int run_fillmanaged(struct client *c, char **word, unsigned count)
{
	uint64_t most = client_size(word[2]), taken = 0;
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr p = 0;

	while (taken < most) {
		r = c->cu.cuMemAllocManaged(&p, client_size(word[1]), CU_MEM_ATTACH_GLOBAL);
		if (r != CUDA_SUCCESS)
			break;
		client_keep(c, p);
		taken++;
	}
	client_say(c, " count=%llu", (unsigned long long)taken);
	return (int)r;
}

const struct client_command client_memory_commands[] = {
	{"alloc", 2, run_alloc, "NAME SIZE"},
	{"pitch", 3, run_pitch, "NAME WIDTH HEIGHT"},
	{"managed", 2, run_managed, "NAME SIZE"},
	{"free", 1, run_free, "NAME"},
	{"freeraw", 1, run_freeraw, "ADDRESS"},
	{"async", 2, run_async, "NAME SIZE [STREAM]"},
	{"frompool", 3, run_frompool, "NAME POOL SIZE [STREAM]"},
	{"freeasync", 1, run_freeasync, "NAME [STREAM]"},
	{"fill", 1, run_fill, "SIZE [MOST]"},
	{"fillvmm", 1, run_fillvmm, "SIZE [MOST]"},
	{"fillasync", 1, run_fillasync, "SIZE [POOL]"},
	{"fillpitch", 2, run_fillpitch, "WIDTH HEIGHT"},
	{"fillmanaged", 2, run_fillmanaged, "SIZE MOST"},
	{"drop", 0, run_drop, "[EVERY]"},
	{"dropasync", 0, run_dropasync, "[STREAM]"},
	{"stream", 1, run_stream, "NAME"},
	{"endstream", 1, run_endstream, "NAME"},
	{"streamsync", 0, run_streamsync, "[STREAM]"},
	{"sync", 0, run_sync, ""},
	{"pool", 1, run_pool, "NAME"},
	{"newpool", 1, run_newpool, "NAME"},
	{"endpool", 1, run_endpool, "NAME"},
	{"setpool", 1, run_setpool, "NAME"},
	{"trim", 2, run_trim, "POOL SIZE"},
	{"threshold", 2, run_threshold, "POOL SIZE"},
	{"reserved", 1, run_reserved, "POOL"},
	{"create", 2, run_create, "HANDLE SIZE [DEVICE|host]"},
	{"release", 1, run_release, "HANDLE"},
	{"retain", 2, run_retain, "HANDLE VA"},
	{"multicast", 2, run_multicast, "OBJECT SIZE [shared]"},
	{"bind", 4, run_bind, "OBJECT OFFSET HANDLE SIZE [DEVICE]"},
	{"bindat", 4, run_bindat, "OBJECT OFFSET VA SIZE [DEVICE]"},
	{"unbind", 3, run_unbind, "OBJECT OFFSET SIZE"},
	{"reserve", 2, run_reserve, "VA SIZE"},
	{"unreserve", 2, run_unreserve, "VA SIZE"},
	{"map", 4, run_map, "VA OFFSET SIZE HANDLE"},
	{"access", 3, run_access, "VA OFFSET SIZE"},
	{"unmap", 3, run_unmap, "VA OFFSET SIZE"},
	{"vmm", 2, run_vmm, "VA SIZE"},
	{0},
};

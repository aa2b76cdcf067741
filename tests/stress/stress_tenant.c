/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenant library's own parts under threads, linked in instead of preloaded, so that sanitizers
 * can look at them. Only the doors dlsym() and dlvsym() are left out: a sanitizer needs these itself.
 *
 * Threads allocate and free by every covered way; the slice's use never exceeds the quota, and when all
 * is freed only the context is left in the books.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "region/shared.h"
#include "region/ledger.h"
#include "tenant/slice/state.h"
#include "tests/unit/cmocka_ready.h"

#define THREADS	    4
#define ROUNDS	    3000
#define HELD	    32
#define MIB	    UINT64_C(1048576)
#define QUOTA_UNITS ((UINT64_C(3) << 30) / REGION_UNIT_BYTES)
#define STEP_BYTES  (2 * MIB)

extern cuInit_fn cuInit;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemAllocPitch_v2_fn cuMemAllocPitch_v2;
extern cuMemAllocManaged_fn cuMemAllocManaged;
extern cuMemFree_v2_fn cuMemFree_v2;
extern cuMemAllocAsync_fn cuMemAllocAsync;
extern cuMemFreeAsync_fn cuMemFreeAsync;
extern cuMemPoolCreate_fn cuMemPoolCreate;
extern cuMemPoolDestroy_fn cuMemPoolDestroy;
extern cuMemAllocFromPoolAsync_fn cuMemAllocFromPoolAsync;
extern cuStreamCreate_fn cuStreamCreate;
extern cuStreamSynchronize_fn cuStreamSynchronize;
extern cuCtxSynchronize_fn cuCtxSynchronize;
extern cuMemCreate_fn cuMemCreate;
extern cuMemMap_fn cuMemMap;
extern cuMemUnmap_fn cuMemUnmap;
extern cuMemRelease_fn cuMemRelease;
extern cuMemAddressReserve_fn cuMemAddressReserve;
extern cuMemGetInfo_v2_fn cuMemGetInfo_v2;
extern cuIpcGetMemHandle_fn cuIpcGetMemHandle;
extern cuMemExportToShareableHandle_fn cuMemExportToShareableHandle;
extern cuMemImportFromShareableHandle_fn cuMemImportFromShareableHandle;

static CUcontext context;

struct worker {
	pthread_t thread;
	unsigned seed;
	CUstream stream;
	CUdeviceptr room; /* of STEP_BYTES a place, for mappings */
	CUdeviceptr plain[HELD], async[HELD];
	bool is_mapped[HELD];
	const char *fault;
};

static unsigned pick(struct worker *w, unsigned below)
{
	return (unsigned)rand_r(&w->seed) % below;
}

static void check(struct worker *w, bool is_right, const char *what)
{
	if (!is_right && !w->fault)
		w->fault = what;
}

static bool is_answer(CUresult r)
{
	return r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY;
}

static void plain(struct worker *w, unsigned i)
{
	size_t bytes = (size_t)1 << (8 + pick(w, 18)), pitch;
	CUresult r;

	if (w->plain[i]) {
		check(w, cuMemFree_v2(w->plain[i]) == CUDA_SUCCESS, "cuMemFree");
		w->plain[i] = 0;
		return;
	}
	switch (pick(w, 4)) {
	case 0:
		r = cuMemAllocPitch_v2(&w->plain[i], &pitch, bytes / 64 + 1, 64, 4);
		break;
	case 1:
		r = cuMemAllocManaged(&w->plain[i], bytes, CU_MEM_ATTACH_GLOBAL);
		break;
	default:
		r = cuMemAlloc_v2(&w->plain[i], bytes);
	}
	check(w, is_answer(r), "an allocation");
	if (r != CUDA_SUCCESS)
		w->plain[i] = 0;
}

static void async(struct worker *w, unsigned i)
{
	CUresult r;

	if (w->async[i]) {
		r = pick(w, 4) ? cuMemFreeAsync(w->async[i], w->stream) : cuMemFree_v2(w->async[i]);
		check(w, r == CUDA_SUCCESS, "a free of pooled memory");
		w->async[i] = 0;
	} else {
		r = cuMemAllocAsync(&w->async[i], (size_t)1 << (10 + pick(w, 16)), w->stream);
		check(w, is_answer(r), "cuMemAllocAsync");
		if (r != CUDA_SUCCESS)
			w->async[i] = 0;
	}
	if (pick(w, 8) == 0)
		check(w, cuStreamSynchronize(w->stream) == CUDA_SUCCESS, "cuStreamSynchronize");
}

/* A pool that comes and goes while the others trim and read all pools that there are. */
static void own_pool(struct worker *w, unsigned i)
{
	CUmemPoolProps where = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdeviceptr p;
	CUresult r;

	if (i % 8)
		return;
	check(w, cuMemPoolCreate(&pool, &where) == CUDA_SUCCESS, "cuMemPoolCreate");
	r = cuMemAllocFromPoolAsync(&p, STEP_BYTES << pick(w, 5), pool, w->stream);
	check(w, is_answer(r), "cuMemAllocFromPoolAsync");
	if (r == CUDA_SUCCESS)
		check(w, cuMemFreeAsync(p, w->stream) == CUDA_SUCCESS, "cuMemFreeAsync");
	if (pick(w, 2))
		check(w, cuStreamSynchronize(w->stream) == CUDA_SUCCESS, "cuStreamSynchronize");
	check(w, cuMemPoolDestroy(pool) == CUDA_SUCCESS, "cuMemPoolDestroy");
}

static void mapped(struct worker *w, unsigned i)
{
	CUmemAllocationProp where = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUdeviceptr at = w->room + i * STEP_BYTES;
	CUmemGenericAllocationHandle handle;
	CUresult r;

	if (w->is_mapped[i]) {
		check(w, cuMemUnmap(at, STEP_BYTES) == CUDA_SUCCESS, "cuMemUnmap");
		w->is_mapped[i] = false;
		return;
	}
	r = cuMemCreate(&handle, STEP_BYTES, &where, 0);
	check(w, is_answer(r), "cuMemCreate");
	if (r != CUDA_SUCCESS)
		return;
	w->is_mapped[i] = cuMemMap(at, STEP_BYTES, 0, handle, 0) == CUDA_SUCCESS;
	check(w, w->is_mapped[i], "cuMemMap");
	check(w, cuMemRelease(handle) == CUDA_SUCCESS, "cuMemRelease");
}

/* Memory that is exported, imported here again, and let go of in any order. */
static void shared(struct worker *w, unsigned i)
{
	const CUmemAllocationHandleType by_fd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CUmemAllocationProp where = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = by_fd,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle, own;
	CUipcMemHandle ipc;
	int fd = -1;
	CUresult r;

	/* Managed memory has no such handle, and that is no fault. */
	if (w->plain[i] && cuIpcGetMemHandle(&ipc, w->plain[i]) == CUDA_SUCCESS)
		check(w, cuIpcGetMemHandle(&ipc, w->plain[i]) == CUDA_SUCCESS, "ipc");
	r = cuMemCreate(&handle, STEP_BYTES, &where, 0);
	check(w, is_answer(r), "cuMemCreate");
	if (r != CUDA_SUCCESS)
		return;
	check(w, cuMemExportToShareableHandle(&fd, handle, by_fd, 0) == CUDA_SUCCESS, "export");
	r = cuMemImportFromShareableHandle(&own, (void *)(intptr_t)fd, by_fd);
	check(w, r == CUDA_SUCCESS, "import");
	if (i % 2)
		close(fd);
	check(w, cuMemRelease(handle) == CUDA_SUCCESS, "cuMemRelease");
	check(w, cuMemRelease(own) == CUDA_SUCCESS, "cuMemRelease");
	if (i % 2 == 0)
		close(fd);
}

static void free_all(struct worker *w)
{
	for (unsigned i = 0; i < HELD; i++) {
		if (w->plain[i])
			plain(w, i);
		if (w->async[i])
			async(w, i);
		if (w->is_mapped[i])
			mapped(w, i);
	}
}

static void *work(void *argument)
{
	struct worker *w = argument;
	size_t free_bytes, total_bytes;

	check(w, cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent");
	check(w, cuStreamCreate(&w->stream, 1) == CUDA_SUCCESS, "cuStreamCreate");
	check(w, cuMemAddressReserve(&w->room, HELD * STEP_BYTES, 0, 0, 0) == CUDA_SUCCESS, "room");
	for (unsigned round = 0; round < ROUNDS && !w->fault; round++) {
		void (*const ways[])(struct worker *, unsigned) = {
			plain, plain, async, mapped, own_pool, shared};

		ways[pick(w, ARRAY_SIZE(ways))](w, pick(w, HELD));
		check(w, ledger_used_units(state.region.file, 0) <= QUOTA_UNITS, "the quota");
		if (round % 64 == 0)
			check(w, cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS,
				"info");
	}
	free_all(w);
	return NULL;
}

static void threads_by_every_way_stay_within_the_quota(void **unused)
{
	static struct worker workers[THREADS];
	uint64_t other;

	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].seed = i + 1;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		if (workers[i].fault)
			print_error("%s\n", workers[i].fault);
		assert_null(workers[i].fault);
	}
	assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	/* What descriptors kept, which were closed since. */
	shared_sweep(&state.region, state.slot);
	/* What streams take is not charged when they are made, but may have been found by now. */
	other = atomic_load(
		&state.region.file->own.slots[state.slot].kind_bytes[0][CHARGE_UNATTRIBUTED]);
	assert_int_equal(ledger_used_units(state.region.file, 0) * (uint64_t)REGION_UNIT_BYTES,
		atomic_load(&state.region.file->own.devices[0].context_bytes) + other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_by_every_way_stay_within_the_quota),
	};
	char folder[256], path[300];
	const char *parent = getenv("TMPDIR");
	int failed;

	snprintf(folder, sizeof(folder), "%s/stress-tenant-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/machine", folder);
	setenv("VGPU_SIM_STATE", path, 1);
	snprintf(path, sizeof(path), "%s/region", folder);
	setenv("CUDA_DEVICE_MEMORY_SHARED_CACHE", path, 1);
	setenv("CUDA_DEVICE_MEMORY_LIMIT", "3g", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	snprintf(path, sizeof(path), "%s/machine", folder);
	unlink(path);
	rmdir(folder);
	return failed;
}

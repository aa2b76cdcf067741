/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load families: memory that a descriptor or a handle of IPC may keep, which outlives what it was made of: created
 * memory that is exported and imported again, ranges for network cards, pools, and memory of another interface.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/tenant/load/load.h"

#define GRAIN (2 * LOAD_MIB)

static uint64_t grains(struct load *l)
{
	return (load_random_bytes(l) + GRAIN) / GRAIN * GRAIN;
}

/* The descriptor is in `other`, and closed before or after what it was made of. */
static CUresult let_go(struct load *l, const struct load_held *held,
	CUresult (*end)(struct load *l, const struct load_held *held))
{
	bool is_closed_first = load_below(l, 2);
	CUresult r;

	if (is_closed_first)
		load_close_descriptor(held->other);
	r = end(l, held);
	if (!is_closed_first)
		load_close_descriptor(held->other);
	return r;
}

static CUresult release(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuMemRelease(held->value);
}

static CUresult free_block(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuMemFree_v2(held->value);
}

/* Half of them are held by what was imported instead. */
static CUresult import_again(struct load *l, struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUmemGenericAllocationHandle again = 0, before = held->value;
	CUresult r = cu->cuMemImportFromShareableHandle(
		&again, (void *)(uintptr_t)held->other, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (r == CUDA_SUCCESS)
		held->value = again;
	return r == CUDA_SUCCESS ? cu->cuMemRelease(before) : r;
}

static CUresult take_exported(struct load *l, struct load_held *ret_held)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuMemCreate(&ret_held->value, grains(l), &prop, 0);
	int fd = -1;

	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuMemExportToShareableHandle(
		&fd, ret_held->value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ret_held->other = load_keep_descriptor(fd);
	return r == CUDA_SUCCESS && load_below(l, 2) ? import_again(l, ret_held) : r;
}

static CUresult give_exported(struct load *l, const struct load_held *held)
{
	return let_go(l, held, release);
}

/* Exported once more, or imported once more, for a moment. */
static CUresult use_exported(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUmemGenericAllocationHandle again = 0;
	CUresult r;
	int fd = -1;

	if (load_below(l, 2)) {
		r = cu->cuMemExportToShareableHandle(
			&fd, held->value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (r == CUDA_SUCCESS)
			close(fd);
		return r;
	}
	r = cu->cuMemImportFromShareableHandle(
		&again, (void *)(uintptr_t)held->other, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	return r == CUDA_SUCCESS ? cu->cuMemRelease(again) : r;
}

static CUresult take_ranged(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	uint64_t bytes = grains(l);
	CUresult r = cu->cuMemAlloc_v2(&ret_held->value, bytes);
	int fd = -1;

	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuMemGetHandleForAddressRange(
		&fd, ret_held->value, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	ret_held->other = load_keep_descriptor(fd);
	ret_held->bytes = bytes;
	return r;
}

/* What is kept when it is freed stays charged until the process ends. */
static CUresult give_ranged(struct load *l, const struct load_held *held)
{
	load_close_descriptor(held->other);
	return free_block(l, held);
}

static CUresult use_ranged(struct load *l, const struct load_held *held)
{
	int fd = -1;
	CUresult r = l->client->cu.cuMemGetHandleForAddressRange(
		&fd, held->value, held->bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);

	if (r == CUDA_SUCCESS)
		close(fd);
	return r;
}

static CUresult take_ipc(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUipcMemHandle handle;
	CUresult r = cu->cuMemAlloc_v2(&ret_held->value, load_random_bytes(l)), undone;

	if (r != CUDA_SUCCESS)
		return r;
	/* Refused where the region has no place for it, or the slice no room for a small block's chunk. */
	r = cu->cuIpcGetMemHandle(&handle, ret_held->value);
	if (r == CUDA_SUCCESS)
		return r;
	undone = cu->cuMemFree_v2(ret_held->value);
	return undone == CUDA_SUCCESS ? r : undone;
}

static CUresult use_ipc(struct load *l, const struct load_held *held)
{
	CUipcMemHandle handle;

	return l->client->cu.cuIpcGetMemHandle(&handle, held->value);
}

/* The pool is destroyed at once; it stays charged until its process ends (docs/decisions/0012). */
static CUresult take_shared_pool(struct load *l, struct load_held *ret_held)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
	const struct door *cu = &l->client->cu;
	CUmemoryPool pool = NULL;
	CUresult r = cu->cuMemPoolCreate(&pool, &props), end;
	int fd = -1;

	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuMemPoolExportToShareableHandle(
		&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (r == CUDA_SUCCESS)
		r = cu->cuMemAllocFromPoolAsync(&ret_held->value, load_random_bytes(l), pool, NULL);
	ret_held->other = load_keep_descriptor(fd);
	if (r != CUDA_SUCCESS)
		load_close_descriptor(ret_held->other);
	end = cu->cuMemPoolDestroy(pool);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult give_shared_pool(struct load *l, const struct load_held *held)
{
	return let_go(l, held, free_block);
}

static CUresult take_external(struct load *l, struct load_held *ret_held)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = load_random_bytes(l)};
	CUexternalMemory memory = NULL;
	CUresult r;

	description.handle.fd = memfd_create("external", MFD_CLOEXEC);
	r = l->client->cu.cuImportExternalMemory(&memory, &description);
	ret_held->value = (uintptr_t)memory;
	if (r != CUDA_SUCCESS)
		close(description.handle.fd);
	return r;
}

static CUresult give_external(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuDestroyExternalMemory((CUexternalMemory)(uintptr_t)held->value);
}

/* Where a part of it is in the process, for a moment. */
static CUresult use_external(struct load *l, const struct load_held *held)
{
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC description = {.size = 1};
	CUdeviceptr at = 0;
	CUresult r = LOAD_FN(cuExternalMemoryGetMappedBuffer)(
		&at, (CUexternalMemory)(uintptr_t)held->value, &description);

	return r == CUDA_SUCCESS ? l->client->cu.cuMemFree_v2(at) : r;
}

const struct load_family load_exported = {.bears_misuse = true,
	.weight = 16,
	.take = take_exported,
	.give = give_exported,
	.use = use_exported};
const struct load_family load_ranged = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuMemGetHandleForAddressRange",
	.stays_with_process = true,
	.take = take_ranged,
	.give = give_ranged,
	.use = use_ranged};
const struct load_family load_ipc = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuIpcGetMemHandle",
	.ends_with_context = true,
	.take = take_ipc,
	.give = free_block,
	.use = use_ipc};
const struct load_family load_shared_pool = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuMemPoolExportToShareableHandle",
	.stays_with_process = true,
	.take = take_shared_pool,
	.give = give_shared_pool};
const struct load_family load_external = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuImportExternalMemory",
	.take = take_external,
	.give = give_external,
	.use = use_external};

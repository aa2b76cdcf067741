/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory that is mapped into parts of arrays.
 *
 * Table entry: key a hash of the array and the part, a the array, b the handle. What is on its way
 * out waits in a list, with an event of ours in the stream that it goes with.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/mapped.h"
#include "tenant/slice/table.h"

struct tile {
	uint64_t key, resource; /* key 0: there was none */
	struct mapped_reference reference;
};

struct tiles {
	struct tiles *next;
	CUcontext context;
	CUevent event; /* NULL: only the context's end tells */
	unsigned count, room;
	struct tile *tile;
};

static struct table mapped_tiles;
static struct lock leaving_lock;
static struct tiles *_Atomic leaving; /* changed under the lock */

static struct tiles *new_tiles(unsigned room)
{
	struct tiles *tiles = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*tiles));

	if (tiles)
		tiles->tile = calloc(room, sizeof(*tiles->tile));
	if (tiles && tiles->tile) {
		tiles->room = room;
		return tiles;
	}
	free(tiles);
	return NULL;
}

static void free_tiles(struct tiles *tiles)
{
	free(tiles->tile);
	free(tiles);
}

static uint64_t resource_of(const CUarrayMapInfo *info)
{
	return tiles_resource(
		info->resource.array, info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
}

static uint64_t mix(uint64_t hash, uint64_t a, uint64_t b)
{
	return hash_u64(hash_u64(hash ^ a) + b);
}

static uint64_t key_of(const CUarrayMapInfo *info)
{
	uint64_t hash = mix(resource_of(info), info->subresourceType, 1);

	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		hash = mix(hash, info->subresource.miptail.layer, 2);
		hash = mix(hash, info->subresource.miptail.offset, info->subresource.miptail.size);
	} else {
		hash = mix(hash, info->subresource.sparseLevel.level,
			info->subresource.sparseLevel.layer);
		hash = mix(hash, info->subresource.sparseLevel.offsetX,
			info->subresource.sparseLevel.extentWidth);
		hash = mix(hash, info->subresource.sparseLevel.offsetY,
			info->subresource.sparseLevel.extentHeight);
		hash = mix(hash, info->subresource.sparseLevel.offsetZ,
			info->subresource.sparseLevel.extentDepth);
	}
	return hash ? hash : 1;
}

static bool is_map(const CUarrayMapInfo *info)
{
	return info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
}

struct tiles *tiles_begin(const CUarrayMapInfo *list, unsigned count)
{
	struct tiles *tiles = new_tiles(count);
	struct table_entry entry;

	tiles_settle();
	if (!tiles) {
		log_error("no memory for our own tables, so a mapping is refused");
		return NULL;
	}
	tiles->count = count;
	for (unsigned i = 0; i < count; i++) {
		uint64_t key = key_of(&list[i]);

		if (table_take(&mapped_tiles, key, &entry) == 0)
			tiles->tile[i] = (struct tile){.key = key,
				.resource = entry.a,
				.reference = mapped_release_begin(entry.b)};
		if (!is_map(&list[i]))
			continue;
		mapped_retain(list[i].memHandle.memHandle);
		FAULT("tile: retained");
		entry = (struct table_entry){
			.key = key, .a = resource_of(&list[i]), .b = list[i].memHandle.memHandle};
		if (table_put(&mapped_tiles, entry) < 0)
			log_warn("a charge stays in the books until the process ends");
	}
	return tiles;
}

/* It is mapped as it was. */
static void put_back(const struct tile *tile)
{
	struct table_entry entry = {
		.key = tile->key, .a = tile->resource, .b = tile->reference.handle};

	if (!tile->key)
		return;
	mapped_release_end(&tile->reference, false);
	if (entry.b && table_put(&mapped_tiles, entry) < 0)
		log_warn("a charge stays in the books until the process ends");
}

static void undo(struct tiles *tiles, const CUarrayMapInfo *list)
{
	for (unsigned i = tiles->count; i-- > 0;) {
		struct mapped_reference reference;
		struct table_entry entry;

		if (is_map(&list[i])) {
			if (table_take(&mapped_tiles, key_of(&list[i]), &entry) != 0)
				log_debug("a mapping was unmapped while it was being undone");
			/* The mapping that is not there held no memory. */
			reference = mapped_release_begin(list[i].memHandle.memHandle);
			mapped_release_end(&reference, true);
		}
		put_back(&tiles->tile[i]);
	}
	free_tiles(tiles);
}

static void give_back(struct tiles *tiles)
{
	FAULT("tile: giving back");
	for (unsigned i = 0; i < tiles->count; i++)
		mapped_release_end(&tiles->tile[i].reference, true);
	free_tiles(tiles);
}

/* Whether one of them was the last reference to its memory. */
static bool is_any_last(const struct tiles *tiles)
{
	for (unsigned i = 0; i < tiles->count; i++)
		if (tiles->tile[i].reference.charge)
			return true;
	return false;
}

/* An event in the stream, of the stream's context; NULL where there can be none. */
static CUevent record_event(CUstream stream, CUcontext context, cuEventRecord_fn *record)
{
	CUevent event = NULL;
	CUcontext popped;

	if (!cuda.cuEventCreate || !cuda.cuEventQuery || !cuda.cuEventDestroy_v2 || !record ||
		!cuda.cuCtxPushCurrent_v2 || cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return NULL;
	if (cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
		event = NULL;
	if (event && record(event, stream) != CUDA_SUCCESS) {
		cuda.cuEventDestroy_v2(event);
		event = NULL;
	}
	cuda.cuCtxPopCurrent_v2(&popped);
	return event;
}

static void push(struct tiles *tiles)
{
	LOCK_SCOPE(&leaving_lock);

	FAULT("tile: list locked");
	/* relaxed: read without the lock only to see whether there is anything */
	tiles->next = atomic_load_explicit(&leaving, memory_order_relaxed);
	atomic_store_explicit(&leaving, tiles, memory_order_relaxed);
}

static struct tiles *pop_all(void)
{
	struct tiles *all;
	LOCK_SCOPE(&leaving_lock);

	/* relaxed: as above */
	all = atomic_load_explicit(&leaving, memory_order_relaxed);
	atomic_store_explicit(&leaving, NULL, memory_order_relaxed);
	return all;
}

void tiles_end(struct tiles *tiles, const CUarrayMapInfo *list, bool is_done, CUstream stream,
	cuEventRecord_fn *record)
{
	FAULT("tile: the driver was called");
	if (!is_done) {
		undo(tiles, list);
		return;
	}
	if (!is_any_last(tiles)) {
		give_back(tiles);
		return;
	}
	if (!cuda.cuStreamGetCtx || cuda.cuStreamGetCtx(stream, &tiles->context) != CUDA_SUCCESS)
		cuda.cuCtxGetCurrent(&tiles->context);
	tiles->event = record_event(stream, tiles->context, record);
	if (!tiles->event)
		log_warn("no event for what is unmapped, so it stays charged with its context");
	push(tiles);
	tiles_settle();
}

struct tiles *tiles_take(uint64_t resource)
{
	struct table_cursor cursor = {.shard = 0};
	struct tiles *tiles = NULL;
	struct table_entry entry;

	while (table_take_by_a(&mapped_tiles, resource, &cursor, &entry) == 0) {
		if (!tiles)
			tiles = new_tiles(16);
		if (tiles && tiles->count == tiles->room) {
			struct tile *more =
				realloc(tiles->tile, tiles->room * 2 * sizeof(*tiles->tile));

			if (more) {
				tiles->tile = more;
				tiles->room *= 2;
			}
		}
		if (!tiles || tiles->count == tiles->room) {
			log_warn("a charge stays in the books until the process ends");
			return tiles;
		}
		tiles->tile[tiles->count++] = (struct tile){.key = entry.key,
			.resource = entry.a,
			.reference = mapped_release_begin(entry.b)};
	}
	return tiles;
}

void tiles_taken(struct tiles *tiles, bool is_gone)
{
	if (!tiles)
		return;
	if (is_gone) {
		give_back(tiles);
		return;
	}
	for (unsigned i = 0; i < tiles->count; i++)
		put_back(&tiles->tile[i]);
	free_tiles(tiles);
}

/* A stream of the program that is captured must not notice our questions. */
static bool has_come(const struct tiles *tiles)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool can_exchange = cuda.cuThreadExchangeStreamCaptureMode &&
			    cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	CUresult r = tiles->event ? cuda.cuEventQuery(tiles->event) : CUDA_ERROR_NOT_READY;

	if (r == CUDA_SUCCESS)
		cuda.cuEventDestroy_v2(tiles->event);
	if (can_exchange)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
	return r == CUDA_SUCCESS;
}

void tiles_settle(void)
{
	struct tiles *tiles, *next;

	/* relaxed: what is pushed at this moment is found the next time */
	if (LIKELY(!atomic_load_explicit(&leaving, memory_order_relaxed)))
		return;
	for (tiles = pop_all(); tiles; tiles = next) {
		next = tiles->next;
		if (has_come(tiles))
			give_back(tiles);
		else
			push(tiles);
	}
}

void tiles_settle_device(struct device *device)
{
	tiles_settle();
}

void tiles_context_ended(struct device *device, CUcontext context)
{
	struct tiles *tiles, *next;

	for (tiles = pop_all(); tiles; tiles = next) {
		next = tiles->next;
		if (tiles->context == context)
			give_back(tiles);
		else
			push(tiles);
	}
}

void tiles_reset_after_fork(void)
{
	table_forget(&mapped_tiles);
	leaving_lock = (struct lock)LOCK_INIT;
	/* relaxed: a child of fork() has one thread */
	atomic_store_explicit(&leaving, NULL, memory_order_relaxed);
}

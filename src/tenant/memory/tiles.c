/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory that is mapped into parts of arrays.
 *
 * A tile is a reference to the memory, like a mapping at an address. The table: key a hash of the array and
 * the part, a the array, b the handle, c the life of the array's context, d the holding's serial number.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/tiles.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/deferred_free.h"
#include "tenant/memory/mapped.h"
#include "tenant/memory/table.h"

struct tile {
	uint64_t key; /* 0: there was none */
	struct table_entry entry;
	struct holding_end end;
	struct mapped_reference made; /* of what is mapped anew */
};

struct tiles {
	struct deferred_free deferred;
	unsigned count, room;
	struct tile *tile;
};

static struct table mapped_tiles;

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

static bool begin_end(const struct table_entry *entry, struct holding_end *ret_end)
{
	return holding_end_begin_of(HOLDING_CREATED, entry->b, (uint32_t)entry->d, ret_end) == 0;
}

static void take_out(struct tile *tile, uint64_t key)
{
	if (table_take(&mapped_tiles, key, &tile->entry) != 0)
		return;
	tile->key = key;
	if (!begin_end(&tile->entry, &tile->end))
		log_debug("a tile's memory is none of ours");
}

static void put_in(struct table_entry entry)
{
	if (table_put(&mapped_tiles, entry) < 0)
		log_warn("memory stays counted until the process ends");
}

/* It is mapped as it was. */
static void put_back(const struct tile *tile)
{
	if (!tile->key)
		return;
	holding_end_done(&tile->end, false);
	put_in(tile->entry);
}

/* Of the first so many parts, none was mapped. */
static void undo(struct tiles *tiles, const CUarrayMapInfo *list, unsigned count)
{
	while (count-- > 0) {
		if (is_map(&list[count]))
			mapped_refer_end(&tiles->tile[count].made, false);
		put_back(&tiles->tile[count]);
	}
	free_tiles(tiles);
}

CUresult tiles_begin(
	const CUarrayMapInfo *list, unsigned count, CUstream stream, struct tiles **ret_tiles)
{
	struct tiles *tiles = new_tiles(count);
	CUresult r;

	deferred_free_collect();
	if (!tiles) {
		log_error("no memory for our own tables, so a mapping is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	tiles->count = count;
	for (unsigned i = 0; i < count; i++) {
		struct tile *t = &tiles->tile[i];

		r = is_map(&list[i]) ? mapped_refer_begin(list[i].memHandle.memHandle, &t->made)
				     : CUDA_SUCCESS;
		if (r != CUDA_SUCCESS) {
			undo(tiles, list, i);
			return r;
		}
		take_out(t, key_of(&list[i]));
	}
	deferred_free_begin(&tiles->deferred, stream);
	*ret_tiles = tiles;
	return CUDA_SUCCESS;
}

static bool give_back(struct deferred_free *deferred, enum deferred_free_end how)
{
	struct tiles *tiles = (struct tiles *)deferred;

	FAULT("tile: giving back");
	for (unsigned i = 0; i < tiles->count; i++)
		if (how == DEFERRED_FREE_UNSEEN)
			holding_end_unseen(&tiles->tile[i].end);
		else
			holding_end_done(&tiles->tile[i].end, true);
	free_tiles(tiles);
	return true;
}

/* Whether one of them was a reference to memory of ours. */
static bool is_any_ours(const struct tiles *tiles)
{
	for (unsigned i = 0; i < tiles->count; i++)
		if (tiles->tile[i].end.holding.serial)
			return true;
	return false;
}

/* A part that is mapped now, or may be. */
static void enter(uint64_t key, const CUarrayMapInfo *info, const struct tile *tile)
{
	struct holding array = {.life = 0};
	uint64_t resource = resource_of(info);

	if (!mapped_refer_end(&tile->made, true) || !tile->made.serial)
		return;
	if (holding_get(HOLDING_ARRAYS, resource, &array) != 0)
		log_debug("an array is none of ours");
	put_in((struct table_entry){.key = key,
		.a = resource,
		.b = tile->made.handle,
		.c = array.life,
		.d = tile->made.serial});
}

/* Enters what is mapped now. False: nothing waits for the stream. */
static bool enter_all(struct tiles *tiles, const CUarrayMapInfo *list, CUstream stream)
{
	for (unsigned i = 0; i < tiles->count; i++) {
		/* One that an earlier part of the list has mapped. */
		if (!tiles->tile[i].key)
			take_out(&tiles->tile[i], key_of(&list[i]));
		if (is_map(&list[i]))
			enter(key_of(&list[i]), &list[i], &tiles->tile[i]);
	}
	/* The driver has the reference until the stream is there, whatever others there are. */
	if (!is_any_ours(tiles))
		return false;
	if (deferred_free_mark(&tiles->deferred, stream) != CUDA_SUCCESS)
		log_warn("no event for what is unmapped, so it stays counted with its context");
	return true;
}

/*
 * The driver may refuse a list in the middle, and nobody knows which parts were done: what was mapped stays, and what is mapped anew
 * gets a key that no part has, so that it stays until the array ends.
 */
static void keep_all(struct tiles *tiles, const CUarrayMapInfo *list)
{
	static _Atomic uint64_t number;

	for (unsigned i = 0; i < tiles->count; i++) {
		put_back(&tiles->tile[i]);
		if (is_map(&list[i]))
			enter(mix(key_of(&list[i]), atomic_fetch_add(&number, 1), 3), &list[i],
				&tiles->tile[i]);
	}
	free_tiles(tiles);
}

static void undo_call(struct tiles *tiles, const CUarrayMapInfo *list)
{
	if (tiles->count == 1)
		undo(tiles, list, 1);
	else
		keep_all(tiles, list);
}

void tiles_end(struct tiles *tiles, const CUarrayMapInfo *list, bool is_done, CUstream stream)
{
	bool is_awaited;

	FAULT("tile: the driver was called");
	is_awaited = is_done && enter_all(tiles, list, stream);
	deferred_free_end(&tiles->deferred);
	if (!is_done) {
		undo_call(tiles, list);
		return;
	}
	if (!is_awaited) {
		give_back(&tiles->deferred, DEFERRED_FREE_PASSED);
		return;
	}
	tiles->deferred.give_back = give_back;
	deferred_free_add(&tiles->deferred);
	deferred_free_collect();
}

static bool is_of_array(const struct table_entry *entry, uint64_t array)
{
	return entry->a == array;
}

struct tiles *tiles_take(uint64_t resource)
{
	struct table_cursor cursor = {.shard = 0};
	struct tiles *tiles = NULL;
	struct table_entry entry;

	while (table_take_next(&mapped_tiles, is_of_array, resource, &cursor, &entry) == 0) {
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
			log_warn("memory stays counted until the process ends");
			return tiles;
		}
		tiles->tile[tiles->count] = (struct tile){.key = entry.key, .entry = entry};
		if (!begin_end(&entry, &tiles->tile[tiles->count++].end))
			log_debug("a tile's memory is none of ours");
	}
	return tiles;
}

void tiles_taken(struct tiles *tiles, bool is_gone)
{
	if (!tiles)
		return;
	if (is_gone) {
		give_back(&tiles->deferred, DEFERRED_FREE_GONE);
		return;
	}
	for (unsigned i = 0; i < tiles->count; i++)
		put_back(&tiles->tile[i]);
	free_tiles(tiles);
}

static bool is_of_life(const struct table_entry *entry, uint64_t life)
{
	return entry->c == life;
}

void tiles_life_ended(struct device *device, uint64_t life)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;
	struct holding_end end;

	(void)device;
	while (life && table_take_next(&mapped_tiles, is_of_life, life, &cursor, &entry) == 0)
		if (begin_end(&entry, &end))
			holding_end_done(&end, true);
}

void tiles_reset_after_fork(void)
{
	table_forget(&mapped_tiles);
}

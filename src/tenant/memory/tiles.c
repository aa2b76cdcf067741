/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory that is mapped into parts of arrays.
 *
 * A tile is a reference to the memory, like a mapping at an address. Which there are is in tile_parts.h; here are the driver's calls that
 * change it, one after the other: else the driver would have them in another order than the books, and let go of what another tile is of.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/tiles.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/deferred_free.h"
#include "tenant/memory/mapped.h"

/* A call that does not come back is not waited for, and others are refused: they would not be in order. */
#define TURN_WAIT_NS UINT64_C(10000000000)
static struct lock turn;

/* One of a call's list that is mapped. */
struct made {
	struct mapped_reference reference;
	struct mapped_tile *tile; /* to be entered; NULL: it is, or nothing is mapped */
};

struct tiles {
	struct deferred_free deferred;
	unsigned count;
	struct made *made;
	struct mapped_tile *out; /* what was taken out */
};

static void free_list(struct mapped_tile *list)
{
	while (list) {
		struct mapped_tile *next = list->next;

		free(list);
		list = next;
	}
}

static void free_tiles(struct tiles *tiles)
{
	for (unsigned i = 0; i < tiles->count; i++)
		free(tiles->made[i].tile);
	free_list(tiles->out);
	free(tiles->made);
	free(tiles);
}

static struct tiles *new_tiles(unsigned count)
{
	struct tiles *tiles = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*tiles));

	if (tiles)
		tiles->made = calloc(count, sizeof(*tiles->made));
	if (tiles && tiles->made) {
		tiles->count = count;
		return tiles;
	}
	free(tiles);
	return NULL;
}

static bool is_map(const CUarrayMapInfo *info)
{
	return info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
}

static void begin_ends(struct mapped_tile *list)
{
	for (struct mapped_tile *tile = list; tile; tile = tile->next)
		if (holding_end_begin_of(HOLDING_CREATED, tile->handle, tile->serial, &tile->end) !=
			0)
			log_debug("a tile's memory is none of ours");
}

/* What lies wholly within the part. */
static void take_out(struct tiles *tiles, const CUarrayMapInfo *info)
{
	struct tile_part part = tile_part_of(info);
	struct mapped_tile *list = tile_parts_take_within(&part), **end = &tiles->out;

	begin_ends(list);
	while (*end)
		end = &(*end)->next;
	*end = list;
}

static void put_in(struct mapped_tile *tile)
{
	if (tile_parts_put(tile))
		return;
	log_warn("memory stays counted until the process ends");
	free(tile);
}

/* They are mapped as they were. */
static void put_back(struct mapped_tile *list)
{
	while (list) {
		struct mapped_tile *tile = list;

		list = tile->next;
		holding_end_done(&tile->end, false);
		put_in(tile);
	}
}

/* Of the first so many parts, none was mapped. */
static void undo(struct tiles *tiles, const CUarrayMapInfo *list, unsigned count)
{
	while (count-- > 0)
		if (is_map(&list[count]))
			mapped_refer_end(&tiles->made[count].reference, false);
	put_back(tiles->out);
	tiles->out = NULL;
	free_tiles(tiles);
}

/* Refers to what is to be mapped. */
static CUresult refer(const CUarrayMapInfo *info, struct made *made)
{
	made->tile = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*made->tile));
	return made->tile ? mapped_refer_begin(info->memHandle.memHandle, &made->reference)
			  : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult begin(const CUarrayMapInfo *list, struct tiles *tiles)
{
	for (unsigned i = 0; i < tiles->count; i++) {
		CUresult r = is_map(&list[i]) ? refer(&list[i], &tiles->made[i]) : CUDA_SUCCESS;

		if (r != CUDA_SUCCESS) {
			undo(tiles, list, i);
			return r;
		}
		take_out(tiles, &list[i]);
	}
	return CUDA_SUCCESS;
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
	if (!patience_lock(&turn, TURN_WAIT_NS)) {
		log_warn("another call that maps into arrays takes too long, so one is refused");
		free_tiles(tiles);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = begin(list, tiles);
	if (r != CUDA_SUCCESS) {
		lock_leave(&turn);
		return r;
	}
	deferred_free_begin(&tiles->deferred, stream);
	*ret_tiles = tiles;
	return CUDA_SUCCESS;
}

/* The references are gone, or go unseen. */
static void end_list(struct mapped_tile *list, bool is_unseen)
{
	for (struct mapped_tile *tile = list; tile; tile = tile->next)
		if (is_unseen)
			holding_end_unseen(&tile->end);
		else
			holding_end_done(&tile->end, true);
}

static bool give_back(struct deferred_free *deferred, enum deferred_free_end how)
{
	struct tiles *tiles = (struct tiles *)deferred;

	FAULT("tile: giving back");
	end_list(tiles->out, how == DEFERRED_FREE_UNSEEN);
	free_tiles(tiles);
	return true;
}

/* Whether one of them was a reference to memory of ours. */
static bool is_any_ours(const struct tiles *tiles)
{
	for (const struct mapped_tile *tile = tiles->out; tile; tile = tile->next)
		if (tile->end.holding.serial)
			return true;
	return false;
}

/* A part that is mapped now, or may be. */
static void enter(const CUarrayMapInfo *info, struct made *made)
{
	struct holding array = {.life = 0};
	struct mapped_tile *tile = made->tile;

	if (!mapped_refer_end(&made->reference, true) || !made->reference.serial)
		return;
	made->tile = NULL;
	tile->part = tile_part_of(info);
	if (holding_get(HOLDING_ARRAYS, tile->part.resource, &array) != 0)
		log_debug("an array is none of ours");
	tile->life = array.life;
	tile->handle = made->reference.handle;
	tile->serial = made->reference.serial;
	put_in(tile);
}

/* Enters what is mapped now. False: nothing waits for the stream. */
static bool enter_all(struct tiles *tiles, const CUarrayMapInfo *list, CUstream stream)
{
	for (unsigned i = 0; i < tiles->count; i++) {
		/* What an earlier part of the list has mapped. */
		take_out(tiles, &list[i]);
		if (is_map(&list[i]))
			enter(&list[i], &tiles->made[i]);
	}
	/* The driver has the reference until the stream is there, whatever others there are. */
	if (!is_any_ours(tiles))
		return false;
	if (deferred_free_mark(&tiles->deferred, stream) != CUDA_SUCCESS)
		log_warn("no event for what is unmapped, so it stays counted with its context");
	return true;
}

/*
 * The driver may refuse a list in the middle, and nobody knows which parts were done: what was mapped stays, and what is mapped anew is
 * there beside it, until what lies within the part is let go of, or the array ends.
 */
static void keep_all(struct tiles *tiles, const CUarrayMapInfo *list)
{
	put_back(tiles->out);
	tiles->out = NULL;
	for (unsigned i = 0; i < tiles->count; i++)
		if (is_map(&list[i]))
			enter(&list[i], &tiles->made[i]);
	free_tiles(tiles);
}

static void undo_call(struct tiles *tiles, const CUarrayMapInfo *list)
{
	if (tiles->count == 1)
		undo(tiles, list, 1);
	else
		keep_all(tiles, list);
}

static void finish(struct tiles *tiles, const CUarrayMapInfo *list, bool is_done, bool is_awaited)
{
	if (!is_done) {
		undo_call(tiles, list);
	} else if (!is_awaited) {
		give_back(&tiles->deferred, DEFERRED_FREE_PASSED);
	} else {
		tiles->deferred.give_back = give_back;
		deferred_free_add(&tiles->deferred);
	}
}

void tiles_end(struct tiles *tiles, const CUarrayMapInfo *list, bool is_done, CUstream stream)
{
	bool is_awaited;

	FAULT("tile: the driver was called");
	is_awaited = is_done && enter_all(tiles, list, stream);
	deferred_free_end(&tiles->deferred);
	finish(tiles, list, is_done, is_awaited);
	lock_leave(&turn);
	if (is_awaited)
		deferred_free_collect();
}

struct mapped_tile *tiles_take(uint64_t resource)
{
	struct mapped_tile *list = tile_parts_take_array(resource);

	begin_ends(list);
	return list;
}

void tiles_taken(struct mapped_tile *list, bool is_gone)
{
	if (!is_gone) {
		put_back(list);
		return;
	}
	end_list(list, false);
	free_list(list);
}

void tiles_life_ended(struct device *device, uint64_t life)
{
	struct mapped_tile *list = life ? tile_parts_take_life(life) : NULL;

	(void)device;
	begin_ends(list);
	end_list(list, false);
	free_list(list);
}

void tiles_reset_after_fork(void)
{
	turn = (struct lock)LOCK_INIT;
	tile_parts_reset_after_fork();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory is mapped into which parts of arrays, apart from the calls that change it (tiles.c), as it knows of geometry alone.
 *
 * Each array has a list of what is mapped, and all together are found by a hash of their part. Nearly every program maps parts of one
 * shape: nothing that is smaller can lie within such a part, so it is enough to look for the very same one. Only for a larger part the
 * array's list is gone through.
 */
#include "tenant/memory/tile_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/lock.h"

#define BUCKET_BITS 12
#define ARRAY_BITS  8
#define TYPES	    2

struct tiled_array {
	struct tiled_array *next; /* in its bucket */
	uint64_t resource;
	struct mapped_tile *tiles;
	uint64_t least[TYPES][3]; /* of all extents that were mapped so far */
};

static struct lock parts_lock; /* held for the lists alone, never while the driver is asked */
static struct mapped_tile *buckets[1 << BUCKET_BITS];
static struct tiled_array *arrays[1 << ARRAY_BITS];

struct tile_part tile_part_of(const CUarrayMapInfo *info)
{
	struct tile_part part = {.resource = tiles_resource(info->resource.array,
					 info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY),
		.type = (uint32_t)info->subresourceType};

	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		part.layer = info->subresource.miptail.layer;
		part.at[0] = info->subresource.miptail.offset;
		part.extent[0] = info->subresource.miptail.size;
		return part;
	}
	part.level = info->subresource.sparseLevel.level;
	part.layer = info->subresource.sparseLevel.layer;
	part.at[0] = info->subresource.sparseLevel.offsetX;
	part.at[1] = info->subresource.sparseLevel.offsetY;
	part.at[2] = info->subresource.sparseLevel.offsetZ;
	part.extent[0] = info->subresource.sparseLevel.extentWidth;
	part.extent[1] = info->subresource.sparseLevel.extentHeight;
	part.extent[2] = info->subresource.sparseLevel.extentDepth;
	return part;
}

static bool is_same(const struct tile_part *a, const struct tile_part *b)
{
	return a->resource == b->resource && a->type == b->type && a->level == b->level &&
	       a->layer == b->layer && memcmp(a->at, b->at, sizeof(a->at)) == 0 &&
	       memcmp(a->extent, b->extent, sizeof(a->extent)) == 0;
}

static bool is_within(const struct tile_part *inner, const struct tile_part *outer)
{
	if (inner->type != outer->type || inner->level != outer->level ||
		inner->layer != outer->layer)
		return false;
	for (int i = 0; i < 3; i++) {
		uint64_t before = inner->at[i] - outer->at[i];

		/* Nobody knows what a driver takes such a part for: what it may be within stays charged. */
		if (outer->extent[i] > UINT64_MAX - outer->at[i])
			return false;
		if (inner->at[i] < outer->at[i] || before > outer->extent[i] ||
			inner->extent[i] > outer->extent[i] - before)
			return false;
	}
	return true;
}

static struct mapped_tile **bucket_of(const struct tile_part *part)
{
	uint64_t hash = part->resource ^ (uint64_t)part->level << 32 ^ part->layer;

	for (int i = 0; i < 3; i++)
		hash = hash_u64(hash_u64(hash ^ part->at[i]) + part->extent[i]);
	return &buckets[hash_place(hash, BUCKET_BITS)];
}

static struct tiled_array **place_of(uint64_t resource)
{
	struct tiled_array **place = &arrays[hash_place(resource, ARRAY_BITS)];

	while (*place && (*place)->resource != resource)
		place = &(*place)->next;
	return place;
}

/* The one that is there, or a new one; NULL without memory. */
static struct tiled_array *array_of(uint64_t resource)
{
	struct tiled_array **place = place_of(resource);

	if (!*place && !FAULT_OUT_OF_MEMORY()) {
		*place = calloc(1, sizeof(**place));
		if (*place) {
			(*place)->resource = resource;
			memset((*place)->least, UINT8_MAX, sizeof((*place)->least));
		}
	}
	return *place;
}

static uint64_t *least_of(struct tiled_array *array, const struct tile_part *part)
{
	return array->least[part->type % TYPES];
}

bool tile_parts_put(struct mapped_tile *tile)
{
	struct mapped_tile **bucket = bucket_of(&tile->part);
	struct tiled_array *array;
	uint64_t *least;
	LOCK_SCOPE(&parts_lock);

	FAULT("tile: locked");
	array = array_of(tile->part.resource);
	if (!array)
		return false;
	least = least_of(array, &tile->part);
	for (int i = 0; i < 3; i++)
		if (tile->part.extent[i] < least[i])
			least[i] = tile->part.extent[i];
	tile->next_of_array = array->tiles;
	tile->at_of_array = &array->tiles;
	if (tile->next_of_array)
		tile->next_of_array->at_of_array = &tile->next_of_array;
	array->tiles = tile;
	tile->next_of_bucket = *bucket;
	*bucket = tile;
	return true;
}

static void take_out(struct mapped_tile *tile)
{
	struct mapped_tile **at = bucket_of(&tile->part);

	while (*at != tile)
		at = &(*at)->next_of_bucket;
	*at = tile->next_of_bucket;
	*tile->at_of_array = tile->next_of_array;
	if (tile->next_of_array)
		tile->next_of_array->at_of_array = tile->at_of_array;
}

/* What is to be taken out of an array. */
typedef bool wanted_fn(const struct mapped_tile *tile, const void *what);

/* Puts it before the list. */
static struct mapped_tile *take(
	struct tiled_array *array, wanted_fn *is_wanted, const void *what, struct mapped_tile *list)
{
	struct mapped_tile *next;

	for (struct mapped_tile *tile = array->tiles; tile; tile = next) {
		next = tile->next_of_array;
		if (!is_wanted(tile, what))
			continue;
		take_out(tile);
		tile->next = list;
		list = tile;
	}
	return list;
}

static bool lies_within(const struct mapped_tile *tile, const void *what)
{
	return is_within(&tile->part, what);
}

/* Those of the very same part. */
static struct mapped_tile *take_same(const struct tile_part *part)
{
	struct mapped_tile *list = NULL, *next;

	for (struct mapped_tile *tile = *bucket_of(part); tile; tile = next) {
		next = tile->next_of_bucket;
		if (!is_same(&tile->part, part))
			continue;
		take_out(tile);
		tile->next = list;
		list = tile;
	}
	return list;
}

/* Whether there may be any, beside those of the very same part. */
static bool may_hold_smaller(struct tiled_array *array, const struct tile_part *part)
{
	const uint64_t *least = least_of(array, part);

	return part->extent[0] >= least[0] && part->extent[1] >= least[1] &&
	       part->extent[2] >= least[2] &&
	       memcmp(part->extent, least, sizeof(part->extent)) != 0;
}

struct mapped_tile *tile_parts_take_within(const struct tile_part *part)
{
	LOCK_SCOPE(&parts_lock);
	struct tiled_array *array = *place_of(part->resource);

	if (!array)
		return NULL;
	return may_hold_smaller(array, part) ? take(array, lies_within, part, NULL)
					     : take_same(part);
}

static bool is_any(const struct mapped_tile *tile, const void *what)
{
	(void)tile;
	(void)what;
	return true;
}

struct mapped_tile *tile_parts_take_array(uint64_t resource)
{
	LOCK_SCOPE(&parts_lock);
	struct tiled_array **place = place_of(resource), *array = *place;
	struct mapped_tile *list = NULL;

	if (array) {
		list = take(array, is_any, NULL, NULL);
		*place = array->next;
		free(array);
	}
	return list;
}

static bool is_of_life(const struct mapped_tile *tile, const void *what)
{
	return tile->life == *(const uint64_t *)what;
}

/* Those of the arrays of a bucket; arrays of which nothing is left are forgotten. */
static struct mapped_tile *take_life_of(
	struct tiled_array **place, uint64_t life, struct mapped_tile *list)
{
	struct tiled_array *array;

	while ((array = *place)) {
		list = take(array, is_of_life, &life, list);
		if (array->tiles) {
			place = &array->next;
			continue;
		}
		*place = array->next;
		free(array);
	}
	return list;
}

struct mapped_tile *tile_parts_take_life(uint64_t life)
{
	LOCK_SCOPE(&parts_lock);
	struct mapped_tile *list = NULL;

	for (unsigned i = 0; i < 1 << ARRAY_BITS; i++)
		list = take_life_of(&arrays[i], life, list);
	return list;
}

void tile_parts_reset_after_fork(void)
{
	/* What is mapped is the parent's, and so is the memory of the lists. */
	parts_lock = (struct lock)LOCK_INIT;
	memset(buckets, 0, sizeof(buckets));
	memset(arrays, 0, sizeof(arrays));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: sizes, chunks, contents. */
#include "sim/cuda/model/memory/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/vmm.h"

#define ARRAY_MAGIC 0x41525231u

/*
 * The layout that explains every size measured on an H200 with driver 580: rows of 64 bytes in groups
 * of 8 (what is smaller is padded), 16 such groups on top of each other in two dimensions, 2 in three
 * with 8 layers behind each other, and fewer where the array is not as high. The driver says the sum
 * of all levels and layers rounded up to 64 KiB, and packs small arrays closer than that.
 */
#define ROW_STEP    64u
#define GROUP_ROWS  8u
#define STACK_MOST  16u
#define CUBE_GROUPS 2u
#define CUBE_LAYERS 8u

static struct array *unused; /* destroyed; first in, last out */

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

size_t array_element(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	switch (descriptor->Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return descriptor->NumChannels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2 * (size_t)descriptor->NumChannels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4 * (size_t)descriptor->NumChannels;
	default:
		return 0;
	}
}

static bool is_layered(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

static size_t at_least_one(size_t value)
{
	return value > 0 ? value : 1;
}

/* Width in elements, height and depth or layers of one level; all at least 1. */
static void extent_of(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level, size_t ret_extent[3])
{
	ret_extent[0] = at_least_one(d->Width >> level);
	ret_extent[1] = at_least_one(d->Height >> level);
	ret_extent[2] = at_least_one(is_layered(d) ? d->Depth : d->Depth >> level);
}

static uint64_t level_size(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level)
{
	size_t extent[3], groups = 1;
	bool is_cube = d->Depth > 0 && !is_layered(d);

	extent_of(d, level, extent);
	while (groups < (is_cube ? CUBE_GROUPS : STACK_MOST) && groups * GROUP_ROWS < extent[1])
		groups *= 2;
	return (uint64_t)round_up(extent[0] * array_element(d), ROW_STEP) *
	       round_up(extent[1], groups * GROUP_ROWS) *
	       (is_cube && extent[2] > 1 ? round_up(extent[2], CUBE_LAYERS) : extent[2]);
}

/* The bytes of an array like this, not rounded up; level_count 0 is one level. */
static uint64_t size_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int level_count)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < (level_count > 0 ? level_count : 1); i++)
		bytes += level_size(descriptor, i);
	return bytes;
}

/* Largest sizes of textures, as cuDeviceGetAttribute() has them for compute capability 9.0. */
static bool is_within(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
		return d->Width <= 32768 && d->Width == d->Height && d->Depth <= 2046 &&
		       (d->Flags & CUDA_ARRAY3D_LAYERED ? d->Depth > 0 && d->Depth % 6 == 0
							: d->Depth == 6);
	if (d->Flags & CUDA_ARRAY3D_LAYERED)
		return d->Width <= 32768 && d->Height <= 32768 && d->Depth > 0 && d->Depth <= 2048;
	if (d->Depth > 0)
		return d->Height > 0 && d->Width <= 16384 && d->Height <= 16384 &&
		       d->Depth <= 16384;
	return d->Width <= 131072 && d->Height <= 65536;
}

bool array_is_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int level_count)
{
	const unsigned int known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
				   CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
				   CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE |
				   CUDA_ARRAY3D_DEFERRED_MAPPING;
	const unsigned int both = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

	return descriptor->Width > 0 && array_element(descriptor) > 0 &&
	       (descriptor->NumChannels == 1 || descriptor->NumChannels == 2 ||
		       descriptor->NumChannels == 4) &&
	       (descriptor->Flags & ~known) == 0 && (descriptor->Flags & both) != both &&
	       level_count <= ARRAY_LEVELS && is_within(descriptor);
}

/* Takes the first place for the array in a shelf; false where it has none. */
static bool place(struct shelf *shelf, struct array *array)
{
	unsigned int grains = (unsigned int)(round_up(array->bytes, ARRAY_GRAIN) / ARRAY_GRAIN);
	unsigned int run = 0, at = 0;

	for (; at < SHELF_GRAINS && run < grains; at++)
		run = shelf->is_taken[at] ? 0 : run + 1;
	if (run < grains)
		return false;
	array->shelf = shelf;
	array->shelf_at = at - grains;
	array->shelf_grains = grains;
	memset(&shelf->is_taken[array->shelf_at], true, grains);
	shelf->count++;
	return true;
}

static struct shelf *add_shelf(struct context *context)
{
	struct shelf *shelf = calloc(1, sizeof(*shelf));

	if (!shelf)
		return NULL;
	if (machine_grow(driver.machine, context->device->index, MACHINE_ARRAY,
		    round_up(ADDRESS_UNIT, driver.board->chunk_bytes)) != 0) {
		free(shelf);
		return NULL;
	}
	shelf->context = context;
	shelf->next = context->shelves;
	if (shelf->next)
		shelf->next->prev = shelf;
	context->shelves = shelf;
	return shelf;
}

static void remove_shelf(struct shelf *shelf)
{
	if (shelf->prev)
		shelf->prev->next = shelf->next;
	else
		shelf->context->shelves = shelf->next;
	if (shelf->next)
		shelf->next->prev = shelf->prev;
	machine_shrink(driver.machine, shelf->context->device->index, MACHINE_ARRAY,
		round_up(ADDRESS_UNIT, driver.board->chunk_bytes));
	free(shelf);
}

/* Below 2 MiB arrays share chunks, above they have their own, as measured. */
static bool take_memory(struct array *array)
{
	struct shelf *shelf = array->context->shelves;

	if (array->bytes >= ADDRESS_UNIT) {
		array->taken_bytes = round_up(array->bytes, driver.board->chunk_bytes);
		if (machine_grow(driver.machine, array->context->device->index, MACHINE_ARRAY,
			    array->taken_bytes) == 0)
			return true;
		array->taken_bytes = 0;
		return false;
	}
	while (shelf && !place(shelf, array))
		shelf = shelf->next;
	if (!shelf)
		shelf = add_shelf(array->context);
	return array->shelf || (shelf && place(shelf, array));
}

static struct array *new_array(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	struct array *array = unused;

	if (array)
		unused = array->next;
	else
		array = malloc(sizeof(*array));
	if (array)
		*array = (struct array){
			.magic = ARRAY_MAGIC, .descriptor = *descriptor, .context = context};
	return array;
}

static void keep_for_later(struct array *array)
{
	if (array->content)
		munmap(array->content, array->content_bytes);
	*array = (struct array){.next = unused};
	unused = array;
}

CUresult array_make(struct context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
	unsigned int level_count, struct array **ret_array)
{
	struct array *array;

	if (size_of(descriptor, level_count) > driver.board->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array = new_array(context, descriptor);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->level_count = level_count;
	array->bytes = size_of(descriptor, level_count);
	if ((descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0 &&
		!take_memory(array)) {
		keep_for_later(array);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	array->next = context->arrays;
	if (array->next)
		array->next->prev = array;
	context->arrays = array;
	*ret_array = array;
	return CUDA_SUCCESS;
}

static void give_memory(struct array *array)
{
	machine_shrink(
		driver.machine, array->context->device->index, MACHINE_ARRAY, array->taken_bytes);
	if (!array->shelf)
		return;
	memset(&array->shelf->is_taken[array->shelf_at], false, array->shelf_grains);
	if (--array->shelf->count == 0)
		remove_shelf(array->shelf);
}

void array_let_go(struct array *array, uint64_t before_ns)
{
	struct tile **place = &array->tiles;

	while (*place) {
		struct tile *tile = *place;

		if (tile->until_ns > before_ns) {
			place = &tile->next;
			continue;
		}
		*place = tile->next;
		vmm_let_go(tile->handle);
		free(tile);
	}
}

void array_drop(struct array *array)
{
	for (unsigned int i = 0; i < ARRAY_LEVELS; i++)
		if (array->levels[i])
			keep_for_later(array->levels[i]);
	array_let_go(array, UINT64_MAX);
	give_memory(array);
	if (array->prev)
		array->prev->next = array->next;
	else
		array->context->arrays = array->next;
	if (array->next)
		array->next->prev = array->prev;
	keep_for_later(array);
}

void array_clear(struct context *context)
{
	while (context->arrays)
		array_drop(context->arrays);
}

struct array *array_find(const void *handle, bool is_mipmap)
{
	struct array *array = (struct array *)(uintptr_t)handle;

	return array && array->magic == ARRAY_MAGIC && (array->level_count > 0) == is_mipmap ? array
											     : NULL;
}

struct array *array_level(struct array *mipmap, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = mipmap->descriptor;
	struct array *array = mipmap->levels[level];
	size_t extent[3];

	if (array)
		return array;
	extent_of(&mipmap->descriptor, level, extent);
	descriptor.Width = extent[0];
	descriptor.Height = descriptor.Height > 0 ? extent[1] : 0;
	descriptor.Depth = descriptor.Depth > 0 ? extent[2] : 0;
	array = new_array(mipmap->context, &descriptor);
	if (array)
		array->parent = mipmap;
	mipmap->levels[level] = array;
	return array;
}

CUresult array_content(CUarray handle, const size_t at[3], const size_t size[3],
	uint8_t **ret_content, size_t *ret_pitch, size_t *ret_slice)
{
	struct array *array = array_find(handle, false);
	size_t extent[3];

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	/* Mapped memory cannot be read through its array here. */
	if (array->descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_NOT_SUPPORTED;
	extent_of(&array->descriptor, 0, extent);
	extent[0] *= array_element(&array->descriptor);
	for (int i = 0; i < 3; i++)
		if (at[i] > extent[i] || size[i] > extent[i] - at[i])
			return CUDA_ERROR_INVALID_VALUE;
	if (!array->content) {
		void *content;

		array->content_bytes = extent[0] * extent[1] * extent[2];
		content = mmap(NULL, array->content_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (content == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		array->content = content;
	}
	*ret_pitch = extent[0];
	*ret_slice = extent[0] * extent[1];
	*ret_content = array->content + at[2] * *ret_slice + at[1] * *ret_pitch + at[0];
	return CUDA_SUCCESS;
}

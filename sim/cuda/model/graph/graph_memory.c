/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a device's graphs. */
#include "sim/cuda/model/graph/graph_memory.h"

#include <stdlib.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * As measured on an H200 with driver 580: nodes of allocations have addresses from the beginning and
 * no memory. An executable graph gets memory when it is uploaded or launched, in chunks of 32 MiB
 * that it shares with others which neither run at the same time nor have left something allocated
 * there. Nothing but a trim gives chunks back, and only those in which nothing runs or is allocated.
 */

struct chunk {
	bool is_taken;	    /* of the device */
	bool is_picked;	    /* by the mapping that is being made */
	uint32_t mappings;  /* that it is part of */
	uint32_t keepers;   /* blocks that are allocated in it */
	uint64_t until_ns;  /* when the last work in it ends */
	struct chunk *next; /* of the device; never freed */
};

static struct graph_pool {
	struct chunk *chunks;
	uint64_t reserved, reserved_high, used_high;
} pools[MACHINE_DEVICES_MAX];

static struct graph_block *allocated;

static uint64_t chunk_bytes(void)
{
	return driver.board->pool_step_bytes;
}

static uint64_t used_bytes(const struct graph_pool *pool)
{
	uint64_t bytes = 0;

	for (const struct chunk *c = pool->chunks; c; c = c->next)
		bytes += c->is_taken && (c->mappings > 0 || c->keepers > 0) ? chunk_bytes() : 0;
	return bytes;
}

void graph_block_drop(struct graph_block *block)
{
	if (--block->refs > 0)
		return;
	address_set_owner(block->base, block->bytes, NULL);
	address_give(block->base, block->bytes, block->is_touched);
	free(block);
}

CUresult graph_block_keep(
	struct graph_block *block, const struct graph_mapping *mapping, struct context *context)
{
	size_t first = block->offset / chunk_bytes();
	size_t count = (block->offset + block->bytes - 1) / chunk_bytes() - first + 1;

	block->kept = malloc(count * sizeof(*block->kept));
	if (!block->kept)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->kept_count = count;
	for (size_t i = 0; i < count; i++) {
		block->kept[i] = mapping->chunks[first + i];
		block->kept[i]->keepers++;
	}
	block->context = context;
	block->refs++;
	block->next = allocated;
	allocated = block;
	return CUDA_SUCCESS;
}

void graph_block_free(struct graph_block *block, uint64_t at_ns)
{
	struct graph_block **link = &allocated;

	while (*link != block)
		link = &(*link)->next;
	*link = block->next;
	for (size_t i = 0; i < block->kept_count; i++) {
		block->kept[i]->keepers--;
		if (block->kept[i]->until_ns < at_ns)
			block->kept[i]->until_ns = at_ns;
	}
	free(block->kept);
	block->kept = NULL;
	block->context = NULL;
	graph_block_drop(block);
}

struct graph_block *graph_block_at(CUdeviceptr base)
{
	struct owner *owner = address_find_owner(base);
	struct graph_block *block = (struct graph_block *)owner;

	return owner && owner->type == OWNER_GRAPH && block->base == base && block->context ? block
											    : NULL;
}

static bool find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent)
{
	struct graph_block *block = (struct graph_block *)owner;

	if (!block->context || address >= block->base + block->bytes)
		return false;
	*ret_extent = (struct extent){.base = block->base,
		.bytes = block->bytes,
		.device = block->device,
		.touched = &block->is_touched,
		.is_accessible = true};
	return true;
}

static CUresult free_at(struct owner *owner, CUdeviceptr base, uint64_t at_ns)
{
	struct graph_block *block = (struct graph_block *)owner;

	if (block->base != base || !block->context)
		return CUDA_ERROR_INVALID_VALUE;
	graph_block_free(block, at_ns);
	return CUDA_SUCCESS;
}

static CUresult free_now(struct owner *owner, CUdeviceptr base)
{
	return free_at(owner, base, 0);
}

CUresult graph_block_new(struct device *device, size_t bytes, struct graph_block **ret_block)
{
	static const struct owner_ops ops = {find, free_now, free_at};
	struct graph_block *block;

	if (bytes > driver.board->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block = calloc(1, sizeof(*block));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->owner = (struct owner){OWNER_GRAPH, &ops};
	block->device = device;
	block->bytes = bytes;
	block->refs = 1;
	if (address_take(bytes, &block->base) != 0) {
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (address_set_owner(block->base, bytes, &block->owner) != 0) {
		address_give(block->base, bytes, false);
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_block = block;
	return CUDA_SUCCESS;
}

void graph_memory_clear(struct context *context)
{
	struct graph_block *block = allocated, *next;

	for (; block; block = next) {
		next = block->next;
		if (block->context == context)
			graph_block_free(block, 0);
	}
}

/* Whether work that begins then may use the chunk, which nobody else uses. */
static bool is_free(const struct chunk *chunk, uint64_t ready_ns)
{
	return chunk->is_taken && chunk->keepers == 0 && chunk->until_ns <= ready_ns;
}

static struct chunk *pick(struct graph_pool *pool, bool is_taken, uint64_t ready_ns)
{
	struct chunk *chunk = pool->chunks;

	while (chunk && (chunk->is_picked || chunk->is_taken != is_taken ||
				(is_taken && !is_free(chunk, ready_ns))))
		chunk = chunk->next;
	if (!chunk && !is_taken) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = pool->chunks;
		pool->chunks = chunk;
	}
	if (chunk)
		chunk->is_picked = true;
	return chunk;
}

/*
 * Chunks for each part of the mapping, its own ones first, into `chunks`; returns how many are new,
 * SIZE_MAX without memory.
 */
static size_t choose(
	const struct graph_mapping *mapping, uint64_t ready_ns, struct chunk **chunks, size_t count)
{
	struct graph_pool *pool = &pools[mapping->device->index];
	size_t new_count = 0;

	for (size_t i = 0; i < count; i++) {
		chunks[i] = NULL;
		if (i < mapping->count && is_free(mapping->chunks[i], ready_ns)) {
			chunks[i] = mapping->chunks[i];
			chunks[i]->is_picked = true;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (!chunks[i])
			chunks[i] = pick(pool, true, ready_ns);
		if (chunks[i])
			continue;
		chunks[i] = pick(pool, false, ready_ns);
		if (!chunks[i])
			return SIZE_MAX;
		new_count++;
	}
	return new_count;
}

static void note_high(struct graph_pool *pool)
{
	uint64_t used = used_bytes(pool);

	if (used > pool->used_high)
		pool->used_high = used;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
}

CUresult graph_map(struct graph_mapping *mapping, uint64_t ready_ns)
{
	size_t count = (mapping->bytes + chunk_bytes() - 1) / chunk_bytes();
	struct graph_pool *pool = &pools[mapping->device->index];
	struct chunk **chunks = calloc(count + 1, sizeof(*chunks));
	size_t new_count;
	uint64_t growth;
	bool is_grown;

	if (!chunks)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new_count = choose(mapping, ready_ns, chunks, count);
	growth = new_count * chunk_bytes();
	is_grown = new_count == 0 ||
		   (new_count != SIZE_MAX && machine_grow(driver.machine, mapping->device->index,
						     MACHINE_GRAPH, growth) == 0);
	for (size_t i = 0; i < count && chunks[i]; i++) {
		chunks[i]->is_picked = false;
		chunks[i]->is_taken |= is_grown;
		chunks[i]->mappings += is_grown;
	}
	if (!is_grown) {
		free(chunks);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	graph_unmap(mapping);
	mapping->chunks = chunks;
	mapping->count = count;
	pool->reserved += growth;
	note_high(pool);
	return CUDA_SUCCESS;
}

void graph_map_busy(struct graph_mapping *mapping, uint64_t until_ns)
{
	for (size_t i = 0; i < mapping->count; i++) {
		if (mapping->chunks[i]->until_ns < until_ns)
			mapping->chunks[i]->until_ns = until_ns;
	}
}

void graph_unmap(struct graph_mapping *mapping)
{
	for (size_t i = 0; i < mapping->count; i++)
		mapping->chunks[i]->mappings--;
	free(mapping->chunks);
	mapping->chunks = NULL;
	mapping->count = 0;
}

void graph_memory_trim(struct device *device)
{
	struct graph_pool *pool = &pools[device->index];
	uint64_t now = timeline_now(device);

	for (struct chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
		if (!is_free(chunk, now))
			continue;
		chunk->is_taken = false;
		pool->reserved -= chunk_bytes();
		machine_shrink(driver.machine, device->index, MACHINE_GRAPH, chunk_bytes());
	}
}

CUresult graph_memory_get(
	const struct device *device, CUgraphMem_attribute attribute, cuuint64_t *ret_value)
{
	const struct graph_pool *pool = &pools[device->index];

	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*ret_value = used_bytes(pool);
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*ret_value = pool->used_high;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*ret_value = pool->reserved;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*ret_value = pool->reserved_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult graph_memory_reset(struct device *device, CUgraphMem_attribute attribute)
{
	struct graph_pool *pool = &pools[device->index];

	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		pool->used_high = used_bytes(pool);
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		pool->reserved_high = pool->reserved;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

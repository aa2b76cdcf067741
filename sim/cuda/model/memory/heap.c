/* SPDX-License-Identifier: Apache-2.0 */
/* Linear memory of a context: small blocks packed into chunks, plain and managed memory. */
#include "sim/cuda/model/memory/heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/ipc.h"
#include "sim/cuda/model/time/timeline.h"
#include "sim/machine/kept.h"

/*
 * As measured on an H200 with driver 580: up to 1 MiB is packed in grains of 512 bytes into chunks
 * of 2 MiB, which are given back when empty; up to 2 MiB takes a chunk of its own, in whose tail
 * small ones may still be packed; more takes the next multiple of 2 MiB.
 */

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static size_t block_charge(void)
{
	return round_up(ADDRESS_UNIT, driver.board->chunk_bytes);
}

static void list_roomy(struct heap *heap, struct block *block)
{
	if (block->is_listed)
		return;
	block->is_listed = true;
	block->prev_roomy = NULL;
	block->next_roomy = heap->roomy;
	if (heap->roomy)
		heap->roomy->prev_roomy = block;
	heap->roomy = block;
}

static void unlist_roomy(struct heap *heap, struct block *block)
{
	if (!block->is_listed)
		return;
	block->is_listed = false;
	if (block->prev_roomy)
		block->prev_roomy->next_roomy = block->next_roomy;
	else
		heap->roomy = block->next_roomy;
	if (block->next_roomy)
		block->next_roomy->prev_roomy = block->prev_roomy;
}

static void set_bits(uint64_t *words, uint32_t start, uint32_t count, bool value)
{
	while (count > 0) {
		uint32_t bit = start % 64;
		uint32_t n = 64 - bit < count ? 64 - bit : count;
		uint64_t mask = (n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << bit;

		if (value)
			words[start / 64] |= mask;
		else
			words[start / 64] &= ~mask;
		start += n;
		count -= n;
	}
}

/* The first free run of `need` grains, or HEAP_GRAINS; then *ret_longest is the longest run. */
static uint32_t find_room(const struct block *block, uint32_t need, uint32_t *ret_longest)
{
	uint32_t grain = 0, longest = 0;

	while (grain < HEAP_GRAINS) {
		uint64_t word = block->taken[grain / 64] >> (grain % 64);
		uint32_t start;

		if (word & 1) {
			uint64_t free_bits = ~word;
			uint32_t n = free_bits != 0 ? (uint32_t)__builtin_ctzll(free_bits) : 64;

			grain += n < 64 - grain % 64 ? n : 64 - grain % 64;
			continue;
		}
		start = grain;
		do {
			word = block->taken[grain / 64] >> (grain % 64);
			if (word != 0) {
				grain += (uint32_t)__builtin_ctzll(word);
				break;
			}
			grain += 64 - grain % 64;
		} while (grain < HEAP_GRAINS && grain - start < need);
		if (grain - start >= need)
			return start;
		if (grain - start > longest)
			longest = grain - start;
	}
	*ret_longest = longest;
	return HEAP_GRAINS;
}

static CUdeviceptr place(struct block *block, uint32_t start, uint32_t need, size_t bytes)
{
	set_bits(block->taken, start, need, true);
	set_bits(block->starts, start, 1, true);
	block->bytes[start] = (uint32_t)bytes;
	block->used += need;
	return block->base + start * HEAP_GRAIN;
}

/* An old context's memory lies where its pointers reach, as long as there is room. */
static int take_addresses(const struct context *context, size_t bytes, CUdeviceptr *ret_base)
{
	if (context_is_old(context) && address_take_low(bytes, ret_base) == 0)
		return 0;
	return address_take(bytes, ret_base);
}

static const struct owner_ops heap_ops, managed_ops;
static void free_plain(struct plain *plain);

static CUresult add_block(struct context *context, struct block **ret_block)
{
	struct heap *heap = &context->heap;
	struct block *block = heap->spare;

	if (!block)
		block = calloc(1, sizeof(*block));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	heap->spare = block;
	if (machine_grow(driver.machine, context->device->index, MACHINE_SMALL, block_charge()) !=
		0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->owner = (struct owner){OWNER_BLOCK, &heap_ops};
	block->context = context;
	block->is_touched = false;
	block->room = HEAP_GRAINS;
	if (take_addresses(context, ADDRESS_UNIT, &block->base) != 0) {
		machine_shrink(
			driver.machine, context->device->index, MACHINE_SMALL, block_charge());
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (address_set_owner(block->base, ADDRESS_UNIT, &block->owner) != 0) {
		address_give(block->base, ADDRESS_UNIT, false);
		machine_shrink(
			driver.machine, context->device->index, MACHINE_SMALL, block_charge());
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	heap->spare = NULL;
	block->prev = NULL;
	block->next = heap->blocks;
	if (heap->blocks)
		heap->blocks->prev = block;
	heap->blocks = block;
	list_roomy(heap, block);
	*ret_block = block;
	return CUDA_SUCCESS;
}

static void remove_block(struct block *block)
{
	struct heap *heap = &block->context->heap;

	unlist_roomy(heap, block);
	if (block->prev)
		block->prev->next = block->next;
	else
		heap->blocks = block->next;
	if (block->next)
		block->next->prev = block->prev;
	address_set_owner(block->base, ADDRESS_UNIT, NULL);
	address_give(block->base, ADDRESS_UNIT, block->is_touched);
	if (block->kept > 0)
		ipc_drop(block->kept - 1);
	else
		machine_shrink(driver.machine, block->context->device->index, MACHINE_SMALL,
			block_charge());
	block->kept = 0;
	if (!heap->spare)
		heap->spare = block;
	else
		free(block);
}

static CUresult alloc_packed(struct context *context, size_t bytes, CUdeviceptr *ret_base)
{
	uint32_t need = (uint32_t)((bytes + HEAP_GRAIN - 1) / HEAP_GRAIN);
	struct block *block, *next;
	CUresult result;

	/* Above the packing limit only an empty chunk will do. */
	for (block = bytes <= driver.board->small_max_bytes ? context->heap.roomy : NULL; block;
		block = next) {
		uint32_t start, longest = 0;

		next = block->next_roomy;
		if (block->room < need)
			continue;
		start = find_room(block, need, &longest);
		if (start < HEAP_GRAINS) {
			*ret_base = place(block, start, need, bytes);
			if (block->used == HEAP_GRAINS)
				unlist_roomy(&context->heap, block);
			return CUDA_SUCCESS;
		}
		block->room = longest;
	}
	result = add_block(context, &block);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_base = place(block, 0, need, bytes);
	block->room = HEAP_GRAINS - need;
	if (block->room == 0)
		unlist_roomy(&context->heap, block);
	return CUDA_SUCCESS;
}

static void link_plain(struct plain *plain)
{
	struct heap *heap = &plain->context->heap;

	plain->prev = NULL;
	plain->next = heap->plains;
	if (heap->plains)
		heap->plains->prev = plain;
	heap->plains = plain;
}

/* Its memory and its addresses are taken; a failure gives them back. */
static CUresult enter_plain(struct plain *plain, CUdeviceptr *ret_base)
{
	link_plain(plain);
	if (address_set_owner(plain->base, plain->bytes, &plain->owner) != 0) {
		heap_free(&plain->owner, plain->base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_base = plain->base;
	return CUDA_SUCCESS;
}

static CUresult alloc_plain(
	struct context *context, size_t bytes, enum machine_kind kind, CUdeviceptr *ret_base)
{
	struct plain *plain;

	if (bytes > driver.board->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	plain = calloc(1, sizeof(*plain));
	if (!plain)
		return CUDA_ERROR_OUT_OF_MEMORY;
	plain->owner = (struct owner){OWNER_PLAIN, &heap_ops};
	plain->kind = kind;
	plain->device = context->device;
	plain->context = context;
	plain->bytes = bytes;
	plain->charged_bytes = round_up(bytes, driver.board->chunk_bytes);
	if (machine_grow(driver.machine, context->device->index, kind, plain->charged_bytes) != 0) {
		free(plain);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (take_addresses(context, bytes, &plain->base) != 0) {
		machine_shrink(driver.machine, context->device->index, kind, plain->charged_bytes);
		free(plain);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return enter_plain(plain, ret_base);
}

/* Of one context. */
static void collect(struct context *context)
{
	struct plain *plain = context->heap.freed ? context->heap.plains : NULL, *next;

	for (; plain; plain = next) {
		next = plain->next;
		if (!plain->is_freed || plain->free_at_ns > timeline_now(context->device))
			continue;
		context->heap.freed--;
		free_plain(plain);
	}
}

void heap_collect(void)
{
	LOCK_SCOPE(&driver.memory_lock);
	for (struct context *c = driver.contexts; c; c = c->next)
		collect(c);
}

CUresult heap_alloc(
	struct context *context, size_t bytes, enum machine_kind kind, CUdeviceptr *ret_base)
{
	collect(context);
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes <= ADDRESS_UNIT && kind == MACHINE_PLAIN)
		return alloc_packed(context, bytes, ret_base);
	return alloc_plain(context, bytes, kind, ret_base);
}

CUresult heap_alloc_managed(
	struct context *context, size_t bytes, unsigned int flags, CUdeviceptr *ret_base)
{
	struct plain *plain = calloc(1, sizeof(*plain));

	if (!plain)
		return CUDA_ERROR_OUT_OF_MEMORY;
	plain->owner = (struct owner){OWNER_MANAGED, &managed_ops};
	plain->kind = MACHINE_MANAGED;
	plain->context = context;
	plain->bytes = bytes;
	plain->charged_bytes = round_up(bytes, driver.board->chunk_bytes);
	plain->attach_flags = flags;
	if (plain->charged_bytes < bytes ||
		address_map(bytes, ADDRESS_UNIT, PROT_READ | PROT_WRITE, &plain->base) != 0) {
		free(plain);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return enter_plain(plain, ret_base);
}

void heap_move_managed(struct plain *plain, struct device *device)
{
	if (plain->device == device)
		return;
	if (device && machine_grow(driver.machine, device->index, MACHINE_MANAGED,
			      plain->charged_bytes) != 0)
		device = NULL;
	if (plain->device)
		machine_shrink(driver.machine, plain->device->index, MACHINE_MANAGED,
			plain->charged_bytes);
	plain->device = device;
}

static void free_plain(struct plain *plain)
{
	if (plain->prev)
		plain->prev->next = plain->next;
	else
		plain->context->heap.plains = plain->next;
	if (plain->next)
		plain->next->prev = plain->prev;
	address_set_owner(plain->base, plain->bytes, NULL);
	if (plain->owner.type == OWNER_MANAGED)
		address_unmap(plain->base, plain->bytes);
	else
		address_give(plain->base, plain->bytes, plain->is_touched);
	if (plain->kept > 0)
		ipc_drop(plain->kept - 1);
	else if (plain->device)
		machine_shrink(
			driver.machine, plain->device->index, plain->kind, plain->charged_bytes);
	free(plain);
}

static CUresult free_packed(struct block *block, CUdeviceptr base)
{
	uint32_t start = (uint32_t)((base - block->base) / HEAP_GRAIN);
	uint32_t count;

	if (base % HEAP_GRAIN != 0 || (block->starts[start / 64] >> (start % 64) & 1) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	count = (block->bytes[start] + HEAP_GRAIN - 1) / HEAP_GRAIN;
	set_bits(block->taken, start, count, false);
	set_bits(block->starts, start, 1, false);
	block->bytes[start] = 0;
	block->used -= count;
	/* At most: what a search may find here from now on. */
	block->room = HEAP_GRAINS - block->used;
	if (block->used == 0)
		remove_block(block);
	else
		list_roomy(&block->context->heap, block);
	return CUDA_SUCCESS;
}

CUresult heap_free(struct owner *owner, CUdeviceptr base)
{
	struct plain *plain = (struct plain *)owner;

	if (owner->type == OWNER_BLOCK)
		return free_packed((struct block *)owner, base);
	if (plain->base != base || plain->is_freed)
		return CUDA_ERROR_INVALID_VALUE;
	free_plain(plain);
	return CUDA_SUCCESS;
}

static bool find_packed(struct block *block, CUdeviceptr address, struct extent *ret_extent)
{
	uint32_t grain = (uint32_t)((address - block->base) / HEAP_GRAIN);
	uint32_t word = grain / 64;
	uint64_t bits = block->starts[word] & (~UINT64_C(0) >> (63 - grain % 64));
	uint32_t start;

	while (bits == 0 && word > 0)
		bits = block->starts[--word];
	if (bits == 0)
		return false;
	start = word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
	if (address >= block->base + start * HEAP_GRAIN + block->bytes[start])
		return false;
	*ret_extent = (struct extent){.base = block->base + start * HEAP_GRAIN,
		.bytes = block->bytes[start],
		.context = block->context,
		.device = block->context->device,
		.touched = &block->is_touched,
		.is_accessible = true};
	return true;
}

static bool find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent)
{
	struct plain *plain = (struct plain *)owner;

	if (owner->type == OWNER_BLOCK)
		return find_packed((struct block *)owner, address, ret_extent);
	if (plain->is_freed || address < plain->base || address >= plain->base + plain->bytes)
		return false;
	*ret_extent = (struct extent){.base = plain->base,
		.bytes = plain->bytes,
		.context = plain->context,
		.device = plain->device,
		.is_managed = owner->type == OWNER_MANAGED,
		.touched = &plain->is_touched,
		.plain = plain,
		.is_accessible = true};
	return true;
}

/* Plain memory may be freed in the order of a stream, too, and goes when that is there. Small blocks go at once. */
static CUresult free_at(struct owner *owner, CUdeviceptr base, uint64_t at_ns)
{
	struct plain *plain = (struct plain *)owner;

	if (owner->type == OWNER_BLOCK || plain->base != base || plain->is_freed ||
		at_ns <= timeline_now(plain->context->device))
		return heap_free(owner, base);
	plain->is_freed = true;
	plain->free_at_ns = at_ns;
	plain->context->heap.freed++;
	return CUDA_SUCCESS;
}

static const struct owner_ops heap_ops = {find, heap_free, free_at};
static const struct owner_ops managed_ops = {find, heap_free, NULL};

bool heap_keep(struct owner *owner, uint32_t *ret_index, uint32_t *ret_generation)
{
	struct block *block = (struct block *)owner;
	struct plain *plain = (struct plain *)owner;
	uint32_t *kept = owner->type == OWNER_BLOCK ? &block->kept : &plain->kept;
	uint32_t *generation = owner->type == OWNER_BLOCK ? &block->generation : &plain->generation;
	struct machine_kept made;
	bool is_kept;

	if (owner->type != OWNER_BLOCK &&
		(owner->type != OWNER_PLAIN || plain->kind != MACHINE_PLAIN))
		return false;
	if (*kept == 0) {
		is_kept = owner->type == OWNER_BLOCK
				  ? ipc_keep(block->context->device, MACHINE_SMALL, block_charge(),
					    MACHINE_SHOWN_HOLDER, &made)
				  : ipc_keep(plain->device, MACHINE_PLAIN, plain->charged_bytes,
					    MACHINE_SHOWN_HOLDER, &made);
		if (!is_kept)
			return false;
		*kept = made.index + 1;
		*generation = made.generation;
	}
	*ret_index = *kept - 1;
	*ret_generation = *generation;
	return true;
}

void heap_clear(struct context *context)
{
	struct heap *heap = &context->heap;

	while (heap->blocks) {
		struct block *block = heap->blocks;

		memset(block->taken, 0, sizeof(block->taken));
		memset(block->starts, 0, sizeof(block->starts));
		memset(block->bytes, 0, sizeof(block->bytes));
		block->used = 0;
		remove_block(block);
	}
	while (heap->plains)
		free_plain(heap->plains);
	heap->freed = 0;
	free(heap->spare);
	heap->spare = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of device addresses, and the map from address to owner. */
#include "sim/cuda/model/memory/address.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/model/driver.h"
#include "sim/machine/kept.h"

/*
 * Device pointers are host addresses in one large inaccessible reservation, so that copies really
 * copy. Runs of units are kept as by a two-level free list: bins by length, boundary marks at both
 * ends of a free run, so that taking and giving back are of constant cost and neighbours join.
 * Access is switched on by windows of 64 MiB: by single runs it would split the reservation into
 * more mappings than the kernel allows a process.
 */

#define WINDOW_UNITS 32
#define BIN_COUNT    96
#define NOBODY	     UINT32_MAX

struct run {
	uint32_t length; /* units; at both ends of a free run, else 0 */
	uint32_t next;	 /* in its bin; at the start only */
	uint32_t prev;
};

struct window {
	uint32_t used;
	bool is_open;
};

static struct {
	CUdeviceptr base;
	uint32_t units;
	struct run *run;
	struct window *window;
	uint32_t idle_window; /* unused and still open, or NOBODY */
	uint32_t bin[BIN_COUNT];
} arena;

/* Exact bins up to 63 units, then four to each power of two. */
static unsigned int bin_of(uint32_t length)
{
	unsigned int log;

	if (length < 64)
		return length;
	log = 31 - (unsigned int)__builtin_clz(length);
	log = 64 + (log - 6) * 4 + ((length >> (log - 2)) & 3);
	return log < BIN_COUNT ? log : BIN_COUNT - 1;
}

static void insert_run(uint32_t start, uint32_t length)
{
	unsigned int bin = bin_of(length);

	arena.run[start].length = length;
	arena.run[start + length - 1].length = length;
	arena.run[start].prev = NOBODY;
	arena.run[start].next = arena.bin[bin];
	if (arena.bin[bin] != NOBODY)
		arena.run[arena.bin[bin]].prev = start;
	arena.bin[bin] = start;
}

static void remove_run(uint32_t start)
{
	struct run *run = &arena.run[start];

	if (run->prev != NOBODY)
		arena.run[run->prev].next = run->next;
	else
		arena.bin[bin_of(run->length)] = run->next;
	if (run->next != NOBODY)
		arena.run[run->next].prev = run->prev;
	arena.run[start + run->length - 1].length = 0;
	run->length = 0;
}

#ifndef MAP_32BIT
#define MAP_32BIT 0
#endif

static void *map_lazily(size_t bytes, int protection, int flags)
{
	void *map = mmap(NULL, bytes, protection,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static int map_aligned(
	size_t bytes, size_t alignment, int protection, int flags, CUdeviceptr *ret_base)
{
	uintptr_t start, aligned;
	char *map;

	if (alignment < ADDRESS_UNIT)
		alignment = ADDRESS_UNIT;
	bytes = (bytes + ADDRESS_UNIT - 1) / ADDRESS_UNIT * ADDRESS_UNIT;
	if (bytes + alignment < bytes)
		return -ENOMEM;
	map = map_lazily(bytes + alignment, protection, flags);
	if (!map)
		return -ENOMEM;
	start = (uintptr_t)map;
	aligned = (start + alignment - 1) / alignment * alignment;
	if (aligned > start)
		munmap(map, aligned - start);
	munmap((void *)(aligned + bytes), start + alignment - aligned);
	*ret_base = aligned;
	return 0;
}

static int start_arena(void)
{
	/* Four times what the devices hold, so that fragments do not matter; 1 TiB at least. */
	uint64_t wanted = driver.board->total_bytes * (uint64_t)driver.device_count * 4;
	uint64_t size = UINT64_C(1) << 40;
	CUdeviceptr base = 0;

	while (size < wanted && size < UINT64_C(1) << 44)
		size *= 2;
	/* Where address space is short (limits, sanitizers) less will do. */
	while (size >= UINT64_C(1) << 32 && address_map(size, ADDRESS_UNIT, PROT_NONE, &base) != 0)
		size /= 2;
	if (base == 0)
		return -ENOMEM;
	arena.units = (uint32_t)(size / ADDRESS_UNIT);
	arena.run = map_lazily(arena.units * sizeof(struct run), PROT_READ | PROT_WRITE, 0);
	arena.window = map_lazily(
		arena.units / WINDOW_UNITS * sizeof(struct window), PROT_READ | PROT_WRITE, 0);
	if (!arena.run || !arena.window)
		return -ENOMEM;
	for (int i = 0; i < BIN_COUNT; i++)
		arena.bin[i] = NOBODY;
	arena.idle_window = NOBODY;
	arena.base = base;
	insert_run(0, arena.units);
	return 0;
}

static int protect_window(uint32_t index, int protection)
{
	return mprotect((void *)(uintptr_t)(arena.base + index * WINDOW_UNITS * ADDRESS_UNIT),
		WINDOW_UNITS * ADDRESS_UNIT, protection);
}

static int open_windows(uint32_t start, uint32_t length)
{
	for (uint32_t i = start / WINDOW_UNITS; i <= (start + length - 1) / WINDOW_UNITS; i++) {
		struct window *window = &arena.window[i];

		if (!window->is_open) {
			if (protect_window(i, PROT_READ | PROT_WRITE) != 0)
				return -ENOMEM;
			window->is_open = true;
		}
		if (i == arena.idle_window)
			arena.idle_window = NOBODY;
	}
	for (uint32_t i = start / WINDOW_UNITS; i <= (start + length - 1) / WINDOW_UNITS; i++)
		arena.window[i].used++;
	return 0;
}

static void close_windows(uint32_t start, uint32_t length)
{
	for (uint32_t i = start / WINDOW_UNITS; i <= (start + length - 1) / WINDOW_UNITS; i++) {
		if (--arena.window[i].used > 0)
			continue;
		/* One idle window stays open: allocating and freeing in turn costs no call. */
		if (arena.idle_window != NOBODY &&
			protect_window(arena.idle_window, PROT_NONE) == 0)
			arena.window[arena.idle_window].is_open = false;
		arena.idle_window = i;
	}
}

int address_take(size_t bytes, CUdeviceptr *ret_base)
{
	uint32_t need, start = NOBODY, length;

	if (arena.base == 0 && start_arena() != 0)
		return -ENOMEM;
	if (bytes > arena.units * ADDRESS_UNIT)
		return -ENOMEM;
	need = (uint32_t)((bytes + ADDRESS_UNIT - 1) / ADDRESS_UNIT);
	for (unsigned int bin = bin_of(need); bin < BIN_COUNT && start == NOBODY; bin++) {
		start = arena.bin[bin];
		while (start != NOBODY && arena.run[start].length < need)
			start = arena.run[start].next;
	}
	if (start == NOBODY)
		return -ENOMEM;
	length = arena.run[start].length;
	if (open_windows(start, need) != 0)
		return -ENOMEM;
	remove_run(start);
	if (length > need)
		insert_run(start + need, length - need);
	*ret_base = arena.base + start * ADDRESS_UNIT;
	return 0;
}

int address_take_low(size_t bytes, CUdeviceptr *ret_base)
{
	if (MAP_32BIT == 0)
		return -ENOMEM;
	return map_aligned(bytes, ADDRESS_UNIT, PROT_READ | PROT_WRITE, MAP_32BIT, ret_base);
}

void address_give(CUdeviceptr base, size_t bytes, bool is_touched)
{
	uint32_t start = (uint32_t)((base - arena.base) / ADDRESS_UNIT);
	uint32_t length = (uint32_t)((bytes + ADDRESS_UNIT - 1) / ADDRESS_UNIT);

	if (base <= UINT32_MAX) {
		address_unmap(base, bytes);
		return;
	}
	if (is_touched)
		madvise((void *)(uintptr_t)base, length * ADDRESS_UNIT, MADV_DONTNEED);
	close_windows(start, length);
	if (start > 0 && arena.run[start - 1].length > 0) {
		uint32_t before = arena.run[start - 1].length;

		start -= before;
		remove_run(start);
		length += before;
	}
	if (start + length < arena.units && arena.run[start + length].length > 0) {
		uint32_t after = arena.run[start + length].length;

		remove_run(start + length);
		length += after;
	}
	insert_run(start, length);
}

int address_map(size_t bytes, size_t alignment, int protection, CUdeviceptr *ret_base)
{
	return map_aligned(bytes, alignment, protection, 0, ret_base);
}

void address_unmap(CUdeviceptr base, size_t bytes)
{
	munmap((void *)(uintptr_t)base, (bytes + ADDRESS_UNIT - 1) / ADDRESS_UNIT * ADDRESS_UNIT);
}

/* 47 bits of address: 2^13 leaves of 2^13 units of 2^21 bytes. */
#define LEAF_BITS 13
static struct owner **leaves[1u << LEAF_BITS];

int address_set_owner(CUdeviceptr base, size_t bytes, struct owner *owner)
{
	uint64_t first = base / ADDRESS_UNIT;
	uint64_t end = (base + bytes + ADDRESS_UNIT - 1) / ADDRESS_UNIT;

	for (uint64_t unit = first; unit < end; unit++) {
		struct owner ***leaf = &leaves[unit >> LEAF_BITS & ((1u << LEAF_BITS) - 1)];

		if (!*leaf) {
			*leaf = calloc(1u << LEAF_BITS, sizeof(**leaf));
			if (!*leaf)
				return -ENOMEM;
		}
		(*leaf)[unit & ((1u << LEAF_BITS) - 1)] = owner;
	}
	return 0;
}

struct owner *address_find_owner(CUdeviceptr address)
{
	uint64_t unit = address / ADDRESS_UNIT;
	struct owner **leaf;

	if (unit >> (2 * LEAF_BITS) != 0)
		return NULL;
	leaf = leaves[unit >> LEAF_BITS];
	return leaf ? leaf[unit & ((1u << LEAF_BITS) - 1)] : NULL;
}

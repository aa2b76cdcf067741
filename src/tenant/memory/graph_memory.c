/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a graph allocates and frees of the memory of graphs.
 *
 * The driver gives an allocation of a graph its address when the node is made, and memory when the graph is launched, in steps of
 * 32 MiB (a node of 100 MiB takes 128; H200, driver 580). Where one is allocated after another was freed it may have the same address
 * (NVIDIA's programming guide, and its sample graphMemoryFootprint), and what lies at one address in one launch is the same memory. So a graph
 * takes no more than the steps that its addresses touch; and no more than the sum of its allocations, each as whole
 * steps, where they lie across the bounds of these. The smaller of the two is reserved.
 */
#include "tenant/memory/graph_memory.h"

#include <stdlib.h>

#include "base/fault.h"
#include "tenant/memory/pools.h"
#include "tenant/slice/state.h"

#define FEW 8

static struct graph_range *add(struct graph_memory **memory)
{
	struct graph_memory *m = *memory;
	struct graph_range *grown;
	size_t room;

	if (!m)
		m = *memory = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	if (m->count == m->room) {
		room = m->room ? 2 * m->room : FEW;
		grown = FAULT_OUT_OF_MEMORY() ? NULL : realloc(m->ranges, room * sizeof(*grown));
		if (!grown)
			return NULL;
		m->ranges = grown;
		m->room = room;
	}
	return &m->ranges[m->count++];
}

/* The need of the device, begun where there is none; NULL without memory. */
static struct need *need_of(struct graph_memory *m, struct device *device)
{
	struct need **at = &m->needs, *need;

	while (*at && (*at)->device->ordinal < device->ordinal)
		at = &(*at)->next;
	if (*at && (*at)->device == device)
		return *at;
	need = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*need));
	if (!need)
		return NULL;
	need->device = device;
	need->next = *at;
	*at = need;
	return need;
}

bool graph_memory_allocates(
	struct graph_memory **memory, struct device *device, CUdeviceptr base, uint64_t bytes)
{
	struct graph_range *range = add(memory);

	if (!range)
		return false;
	*range = (struct graph_range){.base = base, .bytes = bytes};
	if (!device)
		return true;
	range->need = need_of(*memory, device);
	if (!range->need)
		return false;
	range->need->bytes += round_up_u64(bytes, POOL_STEP_BYTES);
	return true;
}

bool graph_memory_frees(struct graph_memory **memory, CUdeviceptr base)
{
	struct graph_range *range = add(memory);

	if (range)
		*range = (struct graph_range){.base = base, .is_freed = true};
	return range;
}

static int compare(const void *a, const void *b)
{
	CUdeviceptr first = ((const struct graph_range *)a)->base;
	CUdeviceptr second = ((const struct graph_range *)b)->base;

	return first < second ? -1 : first > second;
}

/* They come in the order of their addresses. */
static void count_steps(const struct graph_range *range)
{
	uint64_t first = range->base / POOL_STEP_BYTES;
	uint64_t end = (range->base + range->bytes - 1) / POOL_STEP_BYTES + 1;
	struct need *need = range->need;

	if (first < need->first_step)
		first = need->first_step;
	if (first >= end)
		return;
	need->step_count += end - first;
	need->first_step = end;
}

/* Of all at one address: what is there more often, allocation or free, and where both are as often nothing. Returns how many are left. */
static size_t match(struct graph_range *ranges, size_t count, struct graph_range *ret_left)
{
	const struct graph_range *alloc = NULL, *freed = NULL;
	size_t allocs = 0;

	for (size_t i = 0; i < count; i++) {
		if (ranges[i].is_freed) {
			freed = &ranges[i];
		} else {
			alloc = &ranges[i];
			allocs++;
		}
	}
	if (2 * allocs == count)
		return 0;
	*ret_left = 2 * allocs > count ? *alloc : *freed;
	return 1;
}

void graph_memory_close(struct graph_memory *memory)
{
	size_t left = 0, end;

	if (!memory)
		return;
	qsort(memory->ranges, memory->count, sizeof(*memory->ranges), compare);
	for (size_t i = 0; i < memory->count; i = end) {
		for (end = i;
			end < memory->count && memory->ranges[end].base == memory->ranges[i].base;
			end++)
			if (memory->ranges[end].need)
				count_steps(&memory->ranges[end]);
		left += match(&memory->ranges[i], end - i, &memory->ranges[left]);
	}
	memory->count = left;
	for (size_t i = 0; i < left; i++)
		memory->frees_others |= memory->ranges[i].is_freed;
	for (struct need *need = memory->needs; need; need = need->next)
		if (need->step_count * POOL_STEP_BYTES < need->bytes)
			need->bytes = need->step_count * POOL_STEP_BYTES;
}

void graph_memory_free(struct graph_memory *memory)
{
	struct need *next;

	if (!memory)
		return;
	for (struct need *need = memory->needs; need; need = next) {
		next = need->next;
		free(need);
	}
	free(memory->ranges);
	free(memory);
}

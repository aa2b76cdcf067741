/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created and mapped by handle: the holdings of HOLDING_CREATED, and a table of
 * mappings. The driver gives the same handle value for as long as the memory lives, also to
 * cuMemRetainAllocationHandle() after every handle was released (measured on driver 580), so the handle
 * names the memory.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/mapped.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/table.h"

/* Larger than any device's memory; so far back a mapping may begin, at 20 ns a step. */
#define MAPPING_MOST_BYTES (UINT64_C(1) << 39)
/* Up to so many bytes a range is searched step by step, in 80 us. */
#define MAPPING_STEPS_BYTES (MAPPING_STEP_BYTES << 12)

static struct table
	mappings; /* key: address; a: handle; b: bytes; c: the holding's serial number */

bool mapped_let_go(CUmemGenericAllocationHandle handle)
{
	for (unsigned i = 0; i < MAPPED_END_TRIES; i++)
		if (cuda.cuMemRelease(handle) == CUDA_SUCCESS)
			return true;
	log_error("memory that was referred to for a moment stays");
	return false;
}

CUresult mapped_keep(CUmemGenericAllocationHandle handle, struct charge *charge)
{
	if (!charge->device)
		return CUDA_SUCCESS;
	FAULT("mapped: the driver gave");
	if (holding_put_charge(HOLDING_CREATED, handle, charge, 0, 0) < 0) {
		log_error("no memory for our own tables, so an allocation is refused");
		if (!mapped_let_go(handle))
			charge_take(charge);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("mapped: entered");
	charge_take(charge);
	return CUDA_SUCCESS;
}

/*
 * Whether it is no device memory, as the driver says. Its refusal says nothing: the next memory may get the number while a call with it is
 * under way.
 */
static CUresult must_be_nobodys(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (cuda.cuMemGetAllocationPropertiesFromHandle)
		r = cuda.cuMemGetAllocationPropertiesFromHandle(&properties, handle);
	if (r == CUDA_SUCCESS && properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

CUresult mapped_refer_begin(
	CUmemGenericAllocationHandle handle, struct mapped_reference *ret_reference)
{
	struct holding holding;
	bool is_ours;
	CUresult r = CUDA_SUCCESS;
	int pinned = holding_pin_key(HOLDING_CREATED, handle, &holding);

	if (pinned != 0)
		return pinned < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	FAULT("mapped: pinned");
	is_ours = !(holding.flags & HOLDING_NOBODYS);
	/* After it was pinned: what has gone out of the table before, and is there still, is found now. */
	if (!is_ours)
		r = must_be_nobodys(handle);
	if (r != CUDA_SUCCESS) {
		(void)holding_unpin(HOLDING_CREATED, handle, holding.serial);
		return r;
	}
	*ret_reference = (struct mapped_reference){.handle = handle,
		.serial = is_ours ? holding.serial : 0,
		.pin = holding.serial,
		.is_object = is_ours && holding.flags & HOLDING_OBJECT};
	return r;
}

bool mapped_refer_end(const struct mapped_reference *reference, bool is_made)
{
	bool is_there;

	FAULT("mapped: the driver was called");
	if (reference->serial && is_made)
		return holding_keep_pin(HOLDING_CREATED, reference->handle, reference->serial);
	is_there = holding_unpin(HOLDING_CREATED, reference->handle, reference->pin);
	return is_there || !is_made;
}

bool mapped_find(CUdeviceptr at, CUdeviceptr *ret_start, CUdeviceptr *ret_end)
{
	CUdeviceptr start = at & ~(MAPPING_STEP_BYTES - 1);
	struct table_entry mapping;

	/* The driver tells the start only in a context, and of what can be accessed already. */
	for (; start && at - start < MAPPING_MOST_BYTES; start -= MAPPING_STEP_BYTES) {
		if (table_get(&mappings, start, &mapping) != 0)
			continue;
		*ret_start = start;
		*ret_end = start + mapping.b;
		return at < *ret_end;
	}
	return false;
}

/* A mapping of the holding's memory. */
struct mapping_search {
	const struct mapped_reference *reference;
	CUdeviceptr at; /* 0: none was found */
};

static void look_for_mapping(const struct table_entry *mapping, void *argument)
{
	struct mapping_search *s = argument;

	if (mapping->a == s->reference->handle && mapping->c == s->reference->serial)
		s->at = mapping->key;
}

bool mapped_find_of(const struct mapped_reference *reference, CUdeviceptr *ret_at)
{
	struct mapping_search search = {.reference = reference};

	table_visit(&mappings, look_for_mapping, &search);
	*ret_at = search.at;
	return search.at;
}

CUresult mapped_refer_begin_at(CUdeviceptr at, struct mapped_reference *ret_reference)
{
	struct table_entry mapping;
	CUdeviceptr start, end;

	/* What is not mapped, or just being unmapped, has no handle. */
	if (!mapped_find(at, &start, &end) || table_get(&mappings, start, &mapping) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return mapped_refer_begin(mapping.a, ret_reference);
}

bool mapped_map(CUdeviceptr at, uint64_t bytes, const struct mapped_reference *reference)
{
	struct table_entry entry = {
		.key = at, .a = reference->handle, .b = bytes, .c = reference->serial};

	FAULT("mapped: the driver mapped");
	if (table_put(&mappings, entry) == 0)
		return true;
	log_error("no memory for our own tables, so a mapping is refused");
	return false;
}

/* What lies wholly between at and end; those for which the range has places are noted there. */
struct search {
	CUdeviceptr at, end;
	struct mapped_range *range;
	unsigned count;
};

static void note(const struct table_entry *mapping, void *argument)
{
	struct search *s = argument;

	if (mapping->key < s->at || mapping->key >= s->end || mapping->b == 0 ||
		mapping->b > s->end - mapping->key)
		return;
	if (s->count < s->range->places)
		s->range->parts[s->count].at = mapping->key;
	s->count++;
}

static unsigned search(CUdeviceptr at, CUdeviceptr end, struct mapped_range *range)
{
	struct search s = {.at = at, .end = end, .range = range};
	struct table_entry mapping;

	/* A program may name any number of bytes: the longest way is through all that is mapped. */
	if (end - at > MAPPING_STEPS_BYTES) {
		table_visit(&mappings, note, &s);
		return s.count;
	}
	for (; at < end; at += MAPPING_STEP_BYTES)
		if (table_get(&mappings, at, &mapping) == 0)
			note(&mapping, &s);
	return s.count;
}

static bool make_places(CUdeviceptr at, CUdeviceptr end, struct mapped_range *range)
{
	unsigned count;

	range->count = 0;
	range->places = MAPPED_FEW;
	range->parts = range->few;
	count = end > at ? search(at, end, range) : 0;
	if (count > MAPPED_FEW) {
		range->parts = FAULT_OUT_OF_MEMORY() ? NULL : calloc(count, sizeof(*range->parts));
		if (!range->parts) {
			log_error(
				"no memory for our own tables, so a range of mappings is refused");
			return false;
		}
		range->places = count;
		count = search(at, end, range);
	}
	/* What was mapped between the two searches has no place, and is none of this call's. */
	if (count < range->places)
		range->places = count;
	return true;
}

static void free_places(struct mapped_range *range)
{
	if (range->parts != range->few)
		free(range->parts);
}

/* A mapping that was taken out: the next of the range's parts. */
static void begin_part(const struct table_entry *mapping, struct mapped_range *range)
{
	struct mapped_part *p = &range->parts[range->count++];

	*p = (struct mapped_part){.at = mapping->key,
		.bytes = mapping->b,
		.reference = {.handle = mapping->a, .serial = (uint32_t)mapping->c}};
	if (holding_end_begin_of(HOLDING_CREATED, mapping->a, (uint32_t)mapping->c, &p->end) != 0)
		log_debug("a mapping's memory is none of ours");
}

/* Takes out what is mapped at just this range, as nearly every program unmaps it. */
static bool take_whole(CUdeviceptr at, uint64_t bytes, struct table_entry *ret_mapping)
{
	TABLE_SCOPE place = table_enter(&mappings, at, false);

	if (!place.entry || place.entry->b != bytes)
		return false;
	*ret_mapping = *place.entry;
	table_remove(&place);
	return true;
}

bool mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_range *range)
{
	struct table_entry mapping;

	range->count = 0;
	range->parts = range->few;
	if (LIKELY(bytes > 0 && take_whole(at, bytes, &mapping))) {
		begin_part(&mapping, range);
	} else {
		if (!make_places(at, at + bytes, range))
			return false;
		for (unsigned i = 0; i < range->places; i++)
			if (table_take(&mappings, range->parts[i].at, &mapping) == 0)
				begin_part(&mapping, range);
	}
	FAULT("mapped: taken out");
	return true;
}

void mapped_unmap_end(struct mapped_range *range, bool is_unmapped)
{
	for (unsigned i = 0; i < range->count; i++) {
		const struct mapped_part *p = &range->parts[i];

		holding_end_done(&p->end, is_unmapped);
		if (!is_unmapped && !mapped_map(p->at, p->bytes, &p->reference))
			log_warn("memory stays counted until the process ends");
	}
	free_places(range);
}

CUresult mapped_stay_begin(CUdeviceptr at, uint64_t bytes, struct mapped_range *range)
{
	struct table_entry mapping;
	CUresult r = CUDA_SUCCESS;

	if (!make_places(at, at + bytes, range))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; r == CUDA_SUCCESS && i < range->places; i++) {
		struct mapped_part *p = &range->parts[range->count];

		if (table_get(&mappings, range->parts[i].at, &mapping) != 0)
			continue;
		*p = (struct mapped_part){.at = mapping.key, .bytes = mapping.b};
		r = mapped_refer_begin(mapping.a, &p->reference);
		range->count += r == CUDA_SUCCESS;
	}
	if (r != CUDA_SUCCESS)
		mapped_stay_end(range, false);
	return r;
}

uint64_t mapped_range_bytes(const struct mapped_range *range)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < range->count; i++)
		bytes += range->parts[i].bytes;
	return bytes;
}

static bool stays(const struct mapped_part *part)
{
	const struct mapped_reference *reference = &part->reference;
	struct table_entry mapping;
	bool is_there = reference->serial ? holding_stay_by_pin(HOLDING_CREATED, reference->handle,
						    reference->serial)
					  : mapped_refer_end(reference, true);

	return is_there && table_get(&mappings, part->at, &mapping) == 0 &&
	       mapping.a == reference->handle && mapping.c == reference->serial;
}

bool mapped_stay_end(struct mapped_range *range, bool is_made)
{
	bool is_right = true;

	for (unsigned i = 0; i < range->count; i++) {
		if (is_made)
			is_right &= stays(&range->parts[i]);
		else
			mapped_refer_end(&range->parts[i].reference, false);
	}
	free_places(range);
	return is_right;
}

void mapped_reset_after_fork(void)
{
	table_forget(&mappings);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created, mapped and shared by handle: the holdings of HOLDING_CREATED, and a table of
 * mappings. The driver gives the same handle value for as long as the memory lives, also to
 * cuMemRetainAllocationHandle() after every handle was released (measured on driver 580), so the handle
 * names the memory.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/mapped.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/table.h"

/* The granularity of mappings on every device that we know (cuMemGetAllocationGranularity). */
#define MAPPING_STEP_BYTES UINT64_C(0x200000)
/* Larger than any device's memory; so far back a mapping may begin, at 20 ns a step. */
#define MAPPING_MOST_BYTES (UINT64_C(1) << 39)
/* Up to so many bytes a range is searched step by step, in 80 us. */
#define MAPPING_STEPS_BYTES (MAPPING_STEP_BYTES << 12)

static struct table
	mappings; /* key: address; a: handle; b: bytes; c: the holding's serial number */

#define END_TRIES 3 /* a driver that fails does not fail each time */

bool mapped_let_go(CUmemGenericAllocationHandle handle)
{
	for (unsigned i = 0; i < END_TRIES; i++)
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

/* Whether it is no device memory, as far as the driver tells. */
static bool is_nobodys(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	return !cuda.cuMemGetAllocationPropertiesFromHandle ||
	       cuda.cuMemGetAllocationPropertiesFromHandle(&properties, handle) != CUDA_SUCCESS ||
	       properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult mapped_refer_begin(
	CUmemGenericAllocationHandle handle, struct mapped_reference *ret_reference)
{
	struct holding holding = {.serial = 0};

	if (holding_pin(HOLDING_CREATED, handle, &holding) != 0 && !is_nobodys(handle))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_reference = (struct mapped_reference){.handle = handle,
		.serial = holding.serial,
		.is_object = holding.serial && holding.flags & HOLDING_OBJECT};
	FAULT("mapped: pinned");
	return CUDA_SUCCESS;
}

bool mapped_refer_end(const struct mapped_reference *reference, bool is_made)
{
	FAULT("mapped: the driver was called");
	if (!reference->serial)
		return !is_made || is_nobodys(reference->handle);
	if (is_made)
		return holding_keep_pin(HOLDING_CREATED, reference->handle, reference->serial);
	holding_unpin(HOLDING_CREATED, reference->handle, reference->serial);
	return true;
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

CUresult mapped_refer_begin_at(CUdeviceptr at, struct mapped_reference *ret_reference)
{
	struct table_entry mapping;
	CUdeviceptr start, end;

	/* What is not mapped, or just being unmapped, has no handle. */
	if (!mapped_find(at, &start, &end) || table_get(&mappings, start, &mapping) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return mapped_refer_begin(mapping.a, ret_reference);
}

/* Ranges in which a call maps or unmaps; at most so many at once. */
#define TURNS	     64
#define TURN_WAIT_NS UINT64_C(10000000000)
#define TURN_NONE    (-1)
static struct {
	struct lock lock;
	struct turn {
		CUdeviceptr at, end; /* both 0: free */
	} places[TURNS];
} turns;

/* A free place, or TURN_NONE; false where the range is another call's. */
static bool find_place(const struct turn *own, int *ret_place)
{
	*ret_place = TURN_NONE;
	for (int i = 0; i < TURNS; i++) {
		const struct turn *other = &turns.places[i];

		if (other->at < own->end && own->at < other->end)
			return false;
		if (other->end == 0)
			*ret_place = i;
	}
	return true;
}

int mapped_turn_enter(CUdeviceptr at, uint64_t bytes)
{
	struct turn own = {.at = at, .end = at + bytes < at ? UINT64_MAX : at + bytes};
	uint64_t until_ns = clock_now_ns() + TURN_WAIT_NS;
	bool is_ours;
	int place;

	for (unsigned i = 0; clock_now_ns() < until_ns; i++) {
		if (!lock_enter_within(&turns.lock, TURN_WAIT_NS))
			return TURN_NONE;
		is_ours = find_place(&own, &place);
		if (is_ours && place != TURN_NONE)
			turns.places[place] = own;
		lock_leave(&turns.lock);
		if (is_ours)
			return place;
		lock_rest(i);
	}
	log_warn("a call that maps or unmaps memory is not waited for any longer");
	return TURN_NONE;
}

void mapped_turn_leave(const int *place)
{
	if (*place == TURN_NONE || !lock_enter_within(&turns.lock, TURN_WAIT_NS))
		return;
	turns.places[*place] = (struct turn){.end = 0};
	lock_leave(&turns.lock);
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

static bool stays(const struct mapped_part *part)
{
	struct table_entry mapping;

	return (!part->reference.serial ||
		       holding_stay_by_pin(
			       HOLDING_CREATED, part->reference.handle, part->reference.serial)) &&
	       table_get(&mappings, part->at, &mapping) == 0 &&
	       mapping.a == part->reference.handle && mapping.c == part->reference.serial;
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

/* Puts the shared allocation's mark on one more descriptor; the first one gives it its mark. */
static bool mark_descriptor(unsigned shared, int fd)
{
	uint64_t known = atomic_load(&state.region.file->own.shared[shared].mark);
	struct mark mark = {
		.id = known ? known : mark_new_id(MARK_OF_MEMORY), .steps = ipc_steps(shared)};

	return mark_set(fd, mark) == 0 && (known || ipc_set_mark(shared, mark.id, fd));
}

CUresult mapped_export_begin(CUmemGenericAllocationHandle handle, struct mapped_export *ret_export)
{
	struct ipc_memory memory = {.name.key = mark_new_id(MARK_OF_MEMORY), .fd = -1};
	struct mapped_reference *reference = &ret_export->reference;
	CUresult r = mapped_refer_begin(handle, reference);

	ret_export->is_shared = false;
	if (r != CUDA_SUCCESS || !reference->serial || reference->is_object || !memory.name.key)
		return r;
	if (!holding_share(HOLDING_CREATED, handle, &memory, 0, &ret_export->shared))
		return r;
	/* From here on the shared allocation itself is held, whatever becomes of the handle. */
	ret_export->is_shared = true;
	ipc_hold_again(ret_export->shared);
	mapped_refer_end(reference, false);
	return r;
}

/* A descriptor without a mark would keep the memory when nobody is charged for it any more. */
static bool end_shared(unsigned shared, int fd, const struct shared_name *name)
{
	bool is_known = fd >= 0 ? mark_descriptor(shared, fd) : ipc_set_name(shared, name);

	ipc_let_go(shared, false);
	return is_known || fd < 0;
}

bool mapped_export_end(
	const struct mapped_export *export, bool is_made, int fd, const struct shared_name *name)
{
	const struct mapped_reference *reference = &export->reference;
	bool is_known = true;

	FAULT("mapped: exported");
	if (reference->is_object && is_made)
		return holding_stay_by_pin(HOLDING_CREATED, reference->handle, reference->serial);
	if (export->is_shared && is_made)
		is_known = end_shared(export->shared, fd, name);
	else if (export->is_shared)
		ipc_let_go(export->shared, false);
	else if (reference->serial) {
		/* What finds no place in the region may outlive this process, and nobody would be charged for it. */
		holding_unpin(HOLDING_CREATED, reference->handle, reference->serial);
		if (is_made && fd >= 0)
			log_info("the region has no place for exported memory, so it is not "
				 "exported");
		return !is_made || fd < 0;
	}
	if (!is_known)
		log_error("a descriptor cannot be marked, so memory is not exported");
	return is_known;
}

/* The driver may take its time to import; a call that does not come back is not waited for. */
#define IMPORT_WAIT_NS UINT64_C(10000000000)
static struct lock imports_lock;

bool mapped_imports_enter(void)
{
	return lock_enter_within(&imports_lock, IMPORT_WAIT_NS);
}

void mapped_imports_leave(bool is_entered)
{
	if (is_entered)
		lock_leave(&imports_lock);
}

static CUresult keep_imported(CUmemGenericAllocationHandle handle, struct holding holding,
	uint64_t since, bool *ret_is_new)
{
	if (holding_put_or_refer(HOLDING_CREATED, handle, holding, since, ret_is_new, NULL) == 0)
		return CUDA_SUCCESS;
	log_error("no memory for our own tables, so an import is refused");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult mapped_keep_shared(CUmemGenericAllocationHandle handle, unsigned shared, uint64_t since)
{
	struct holding holding = {.references = 1, .shared = shared, .flags = HOLDING_SHARED};
	bool is_new;
	CUresult r = keep_imported(handle, holding, since, &is_new);

	/* The same handle again: one hold of ours is enough for all of its references. */
	if (r == CUDA_SUCCESS && !is_new)
		ipc_let_go(shared, false);
	return r;
}

CUresult mapped_keep_object(CUmemGenericAllocationHandle handle, uint64_t since)
{
	struct holding holding = {.references = 1, .flags = HOLDING_OBJECT | HOLDING_MAY_STAY};
	bool is_new;

	return keep_imported(handle, holding, since, &is_new);
}

CUresult mapped_keep_foreign(
	CUmemGenericAllocationHandle handle, struct device *device, uint64_t bytes, uint64_t since)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	bool is_new = false;
	CUresult r = charge_reserve(device, bytes, CHARGE_SHARED, &charge);

	if (r == CUDA_SUCCESS)
		r = keep_imported(handle, holding_of(&charge, 0, HOLDING_FOREIGN), since, &is_new);
	if (is_new)
		charge_take(&charge);
	return r;
}

/* What stayed mapped would be held when the program has let go of it. */
static void unmap(CUdeviceptr at, uint64_t bytes)
{
	for (unsigned i = 0; i < END_TRIES; i++)
		if (cuda.cuMemUnmap(at, bytes) == CUDA_SUCCESS)
			return;
	log_error("memory that was mapped for a moment stays mapped", U64("bytes", bytes));
}

/* Whether just so much is mapped, in a range that is larger by a step. */
static bool can_map(CUmemGenericAllocationHandle handle, CUdeviceptr at, uint64_t bytes)
{
	if (cuda.cuMemMap(at, bytes, 0, handle, 0) != CUDA_SUCCESS)
		return false;
	unmap(at, bytes);
	return true;
}

/* The first size of those from least_bytes to most_bytes that it is mapped as, and not as a larger one, too; or 0. */
static uint64_t find_size(
	CUmemGenericAllocationHandle handle, uint64_t least_bytes, uint64_t most_bytes)
{
	uint64_t bytes = least_bytes, range_bytes = most_bytes + MAPPING_STEP_BYTES;
	CUdeviceptr at;

	if (!least_bytes || !cuda.cuMemAddressReserve || !cuda.cuMemAddressFree ||
		cuda.cuMemAddressReserve(&at, range_bytes, 0, 0, 0) != CUDA_SUCCESS)
		return 0;
	while (bytes <= most_bytes &&
		(!can_map(handle, at, bytes) || can_map(handle, at, bytes + MAPPING_STEP_BYTES)))
		bytes += MAPPING_STEP_BYTES;
	cuda.cuMemAddressFree(at, range_bytes);
	return bytes <= most_bytes ? bytes : 0;
}

uint64_t mapped_measure(
	CUmemGenericAllocationHandle handle, const struct device *device, uint64_t told_bytes)
{
	/* relaxed: as in charge.c */
	uint32_t limit = atomic_load_explicit(&device->limit_units, memory_order_relaxed);
	uint64_t found = find_size(handle, told_bytes, told_bytes);
	size_t most = 0;

	if (found || !cuda.cuDeviceTotalMem_v2 ||
		cuda.cuDeviceTotalMem_v2(&most, device->ordinal) != CUDA_SUCCESS)
		return found;
	if (limit != LEDGER_NO_LIMIT && (uint64_t)limit * REGION_UNIT_BYTES < most)
		most = (size_t)limit * REGION_UNIT_BYTES;
	return find_size(handle, MAPPING_STEP_BYTES, most & ~(MAPPING_STEP_BYTES - 1));
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

/* Another reference of the program's to what is mapped there, if that is still this handle's. */
static bool retain_at(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
	CUmemGenericAllocationHandle retained;

	if (cuda.cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)at) != CUDA_SUCCESS)
		return false;
	if (retained == handle)
		return true;
	mapped_let_go(retained);
	return false;
}

/* The same of what is not mapped: the driver retains a handle by an address alone. */
static bool retain_unmapped(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
	bool is_retained = false;
	CUdeviceptr at;

	if (cuda.cuMemAddressReserve(&at, bytes, 0, 0, 0) != CUDA_SUCCESS)
		return false;
	if (cuda.cuMemMap(at, bytes, 0, handle, 0) == CUDA_SUCCESS) {
		is_retained = retain_at(at, handle);
		unmap(at, bytes);
	}
	cuda.cuMemAddressFree(at, bytes);
	return is_retained;
}

static bool retain(const struct mapped_reference *reference, uint64_t bytes)
{
	struct mapping_search search = {.reference = reference};

	table_visit(&mappings, look_for_mapping, &search);
	return (search.at && retain_at(search.at, reference->handle)) ||
	       retain_unmapped(reference->handle, bytes);
}

CUresult mapped_import_again(unsigned shared, CUmemGenericAllocationHandle *ret_handle)
{
	uint64_t bytes = ipc_steps(shared) * MARK_STEP_BYTES;
	struct mapped_reference reference;
	struct holding holding;
	bool is_retained, is_there;
	uint64_t handle;

	/* Without these a driver gives no reference to what it has not mapped. */
	if (!cuda.cuMemRetainAllocationHandle || !cuda.cuMemAddressReserve ||
		!cuda.cuMemAddressFree)
		return CUDA_ERROR_NOT_FOUND;
	if (holding_pin_shared(HOLDING_CREATED, shared, &handle, &holding) != 0)
		return CUDA_ERROR_NOT_FOUND;
	reference = (struct mapped_reference){.handle = handle, .serial = holding.serial};
	FAULT("mapped: pinned");
	is_retained = retain(&reference, bytes);
	is_there = mapped_refer_end(&reference, is_retained);
	if (!is_there)
		mapped_let_go(reference.handle);
	if (!is_retained || !is_there)
		return is_there ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_FOUND;
	*ret_handle = reference.handle;
	return CUDA_SUCCESS;
}

void mapped_reset_after_fork(void)
{
	imports_lock = (struct lock)LOCK_INIT;
	memset(&turns, 0, sizeof(turns));
	table_forget(&mappings);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created, mapped and shared by handle.
 *
 * Two tables: handles (key the handle, a the references, b units << 32 | ordinal) and mappings (key
 * the address, a the handle, b the size). The driver gives the same handle value for as long as
 * the memory lives, also to cuMemRetainAllocationHandle() after every handle was released (measured
 * on driver 580), so the handle names the memory.
 */
#define LOG_TOPIC LOG_MEMORY
#include "shim/mapped.h"

#include "base/log.h"
#include "shim/doors.h"
#include "shim/table.h"

/* The granularity of mappings on every device that we know (cuMemGetAllocationGranularity). */
#define MAPPING_STEP_BYTES UINT64_C(0x200000)

static struct table handles;
static struct table mappings;

static bool add_reference(struct table_entry *entry, uint64_t argument)
{
	(void)argument;
	entry->a++;
	return true;
}

static bool drop_reference(struct table_entry *entry, uint64_t argument)
{
	(void)argument;
	entry->a--;
	return entry->a > 0;
}

CUresult mapped_keep(CUmemGenericAllocationHandle handle, struct charge *charge)
{
	struct table_entry entry = {.key = handle, .a = 1};

	if (!charge->device)
		return CUDA_SUCCESS;
	entry.b = (uint64_t)charge->units << 32 | (uint64_t)charge->device->ordinal;
	if (table_put(&handles, entry) < 0) {
		log_error("no memory for our own tables, so an allocation is refused");
		cuda.cuMemRelease(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	charge_take(charge);
	return CUDA_SUCCESS;
}

void mapped_retain(CUmemGenericAllocationHandle handle)
{
	struct table_entry entry;

	if (table_update(&handles, handle, add_reference, 0, &entry) != 0)
		log_debug("a handle is none of ours");
}

struct mapped_reference mapped_release_begin(CUmemGenericAllocationHandle handle)
{
	struct table_entry entry;

	if (table_update(&handles, handle, drop_reference, 0, &entry) != 0)
		return (struct mapped_reference){.handle = 0};
	return (struct mapped_reference){.handle = handle, .charge = entry.a == 0 ? entry.b : 0};
}

void mapped_release_end(const struct mapped_reference *reference, bool is_released)
{
	struct table_entry entry = {.key = reference->handle, .a = 1, .b = reference->charge};

	if (!reference->handle)
		return;
	if (is_released && reference->charge) {
		charge_give_back(state_device((CUdevice)(reference->charge & 0xff)),
			(reference->charge >> 32) * REGION_UNIT_BYTES, CHARGE_MAPPED);
	} else if (is_released) {
		return;
	} else if (!reference->charge) {
		mapped_retain(reference->handle);
	} else if (table_put(&handles, entry) < 0) {
		log_warn("a charge stays in the books until the process ends");
	}
}

bool mapped_map(CUdeviceptr at, uint64_t bytes, CUmemGenericAllocationHandle handle)
{
	struct table_entry entry = {.key = at, .a = handle, .b = bytes};

	if (table_put(&mappings, entry) == 0)
		return true;
	log_error("no memory for our own tables, so a mapping is refused");
	return false;
}

/* Visits the mappings that lie wholly in the range; returns how many there are. */
static unsigned walk(CUdeviceptr at, uint64_t bytes,
	void (*visit)(const struct table_entry *mapping, struct mapped_unmapping *u),
	struct mapped_unmapping *u)
{
	CUdeviceptr end = at + bytes;
	struct table_entry entry;
	unsigned count = 0;

	while (at < end) {
		if (table_get(&mappings, at, &entry) != 0 || entry.b == 0 || entry.b > end - at) {
			at += MAPPING_STEP_BYTES;
			continue;
		}
		count++;
		at += entry.b;
		if (visit)
			visit(&entry, u);
	}
	return count;
}

static void take_out(const struct table_entry *mapping, struct mapped_unmapping *u)
{
	if (table_take(&mappings, mapping->key, NULL) != 0 || u->count == MAPPED_BATCH)
		return;
	u->taken[u->count].at = mapping->key;
	u->taken[u->count].bytes = mapping->b;
	u->taken[u->count++].reference = mapped_release_begin(mapping->a);
}

static void drop(const struct table_entry *mapping, struct mapped_unmapping *u)
{
	struct mapped_reference reference;

	(void)u;
	if (table_take(&mappings, mapping->key, NULL) != 0)
		return;
	reference = mapped_release_begin(mapping->a);
	mapped_release_end(&reference, true);
}

void mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_unmapping *ret_unmapping)
{
	ret_unmapping->at = at;
	ret_unmapping->bytes = bytes;
	ret_unmapping->count = 0;
	ret_unmapping->is_complete = walk(at, bytes, NULL, NULL) <= MAPPED_BATCH;
	if (ret_unmapping->is_complete)
		walk(at, bytes, take_out, ret_unmapping);
}

void mapped_unmap_end(const struct mapped_unmapping *u, bool is_unmapped)
{
	for (unsigned i = 0; i < u->count; i++) {
		mapped_release_end(&u->taken[i].reference, is_unmapped);
		if (!is_unmapped && !mapped_map(u->taken[i].at, u->taken[i].bytes,
					    u->taken[i].reference.handle))
			log_warn("a charge stays in the books until the process ends");
	}
	/* So many at once that no other thread can have been given their handles by chance alone. */
	if (!u->is_complete && is_unmapped)
		walk(u->at, u->bytes, drop, NULL);
}

void mapped_forget_parent(void)
{
	table_forget(&handles);
	table_forget(&mappings);
}

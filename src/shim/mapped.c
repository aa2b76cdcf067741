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

#include <stdlib.h>

#include "base/fault.h"
#include "base/log.h"
#include "shim/doors.h"
#include "shim/table.h"

/* The granularity of mappings on every device that we know (cuMemGetAllocationGranularity). */
#define MAPPING_STEP_BYTES UINT64_C(0x200000)

static struct table handles;
static struct table mappings;

CUresult mapped_keep(CUmemGenericAllocationHandle handle, struct charge *charge)
{
	struct table_entry entry = {.key = handle, .a = 1};

	if (!charge->device)
		return CUDA_SUCCESS;
	entry.b = (uint64_t)charge->units << 32 | (uint64_t)charge->device->ordinal;
	FAULT("mapped: the driver gave");
	if (table_put(&handles, entry) < 0) {
		log_error("no memory for our own tables, so an allocation is refused");
		cuda.cuMemRelease(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("mapped: entered");
	charge_take(charge);
	return CUDA_SUCCESS;
}

void mapped_retain(CUmemGenericAllocationHandle handle)
{
	struct table_entry entry;

	if (table_count_up(&handles, handle, false, &entry) != 0)
		log_debug("a handle is none of ours");
}

struct mapped_reference mapped_release_begin(CUmemGenericAllocationHandle handle)
{
	struct table_entry entry;

	if (table_count_down(&handles, handle, &entry) != 0)
		return (struct mapped_reference){.handle = 0};
	FAULT("mapped: taken out");
	return (struct mapped_reference){.handle = handle, .charge = entry.a == 0 ? entry.b : 0};
}

void mapped_release_end(const struct mapped_reference *reference, bool is_released)
{
	struct table_entry entry = {.key = reference->handle, .a = 1, .b = reference->charge};

	if (!reference->handle)
		return;
	FAULT("mapped: the driver released");
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

	FAULT("mapped: the driver mapped");
	if (table_put(&mappings, entry) == 0)
		return true;
	log_error("no memory for our own tables, so a mapping is refused");
	return false;
}

/* The next mapping that lies wholly in the range, from *at on, which moves behind it. */
static bool next_mapping(CUdeviceptr *at, CUdeviceptr end, struct table_entry *ret_mapping)
{
	for (; *at < end; *at += MAPPING_STEP_BYTES) {
		if (table_get(&mappings, *at, ret_mapping) != 0 || ret_mapping->b == 0 ||
			ret_mapping->b > end - *at)
			continue;
		*at += ret_mapping->b;
		return true;
	}
	return false;
}

static bool make_places(CUdeviceptr at, CUdeviceptr end, struct mapped_unmapping *u)
{
	struct table_entry mapping;
	unsigned count = 0;

	while (next_mapping(&at, end, &mapping))
		count++;
	u->taken = u->few;
	if (count > MAPPED_FEW)
		u->taken = FAULT_OUT_OF_MEMORY() ? NULL : calloc(count, sizeof(*u->taken));
	u->places = count;
	return u->taken != NULL;
}

bool mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_unmapping *u)
{
	CUdeviceptr end = at + bytes;
	struct table_entry mapping;

	u->count = 0;
	if (!make_places(at, end, u)) {
		log_error("no memory for our own tables, so an unmapping is refused");
		return false;
	}
	while (u->count < u->places && next_mapping(&at, end, &mapping)) {
		struct mapped_taken *t = &u->taken[u->count];

		if (table_take(&mappings, mapping.key, &mapping) != 0)
			continue;
		t->at = mapping.key;
		t->bytes = mapping.b;
		t->reference = mapped_release_begin(mapping.a);
		u->count++;
	}
	return true;
}

void mapped_unmap_end(struct mapped_unmapping *u, bool is_unmapped)
{
	for (unsigned i = 0; i < u->count; i++) {
		const struct mapped_taken *t = &u->taken[i];

		mapped_release_end(&t->reference, is_unmapped);
		if (!is_unmapped && !mapped_map(t->at, t->bytes, t->reference.handle))
			log_warn("a charge stays in the books until the process ends");
	}
	if (u->taken != u->few)
		free(u->taken);
}

void mapped_forget_parent(void)
{
	table_forget(&handles);
	table_forget(&mappings);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created, mapped and shared by handle.
 *
 * Two tables: handles (key the handle, a the references, b units << 32 | ordinal, or a joint in the
 * place of the units) and mappings (key
 * the address, a the handle, b the size). The driver gives the same handle value for as long as
 * the memory lives, also to cuMemRetainAllocationHandle() after every handle was released (measured
 * on driver 580), so the handle names the memory.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/mapped.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/shared.h"
#include "tenant/slice/table.h"

/* The granularity of mappings on every device that we know (cuMemGetAllocationGranularity). */
#define MAPPING_STEP_BYTES UINT64_C(0x200000)

#define IS_JOINT	   UINT64_C(0x10000)
#define IS_FOREIGN	   UINT64_C(0x20000) /* another slice's: units 0 until it is charged */

static struct table handles;
static struct table mappings;
static struct lock share_lock; /* one thread at a time makes joints of handles */

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

static void give_back(uint64_t b)
{
	uint64_t bytes = (b >> 32) * REGION_UNIT_BYTES;

	if (b & IS_JOINT)
		shared_let_go((unsigned)(b >> 32), false);
	else if (bytes)
		charge_give_back(state_device((CUdevice)(b & 0xff)), bytes,
			b & IS_FOREIGN ? CHARGE_SHARED : CHARGE_MAPPED);
}

void mapped_release_end(const struct mapped_reference *reference, bool is_released)
{
	struct table_entry entry = {.key = reference->handle, .a = 1, .b = reference->charge};

	if (!reference->handle)
		return;
	FAULT("mapped: the driver released");
	if (is_released && reference->charge) {
		give_back(reference->charge);
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

/* A descriptor may keep the memory, and nobody can tell how long: one reference too many. */
static void stay(CUmemGenericAllocationHandle handle)
{
	log_info("exported memory stays charged until the process ends");
	mapped_retain(handle);
}

/* Puts the joint's mark on one more descriptor; the first one gives the joint its mark. */
static bool mark_again(unsigned joint, uint32_t steps, int fd)
{
	uint64_t known = atomic_load(&state.region.file->own.joints[joint].mark);
	struct mark mark = {.id = known ? known : mark_new_id(), .steps = steps};

	return mark_set(fd, mark) == 0 && (known || shared_set_mark(joint, mark.id, fd));
}

static bool make_joint(
	CUmemGenericAllocationHandle handle, const struct table_entry *entry, int fd, uint64_t key)
{
	struct shared_memory memory = {.device = state_device((CUdevice)(entry->b & 0xff)),
		.bytes = (entry->b >> 32) * REGION_UNIT_BYTES,
		.kind = CHARGE_MAPPED,
		.key = key,
		.fd = fd};
	struct mark mark = {.id = key,
		.steps = (uint32_t)(round_up_u64(memory.bytes, MARK_STEP_BYTES) / MARK_STEP_BYTES)};
	unsigned joint;

	if (fd >= 0) {
		memory.key = memory.mark = mark.id = mark_new_id();
		if (mark_set(fd, mark) < 0)
			return false;
	}
	if (!shared_make(&memory, &joint))
		return false;
	if (table_change_b(&handles, handle, entry->b,
		    (uint64_t)joint << 32 | (uint32_t)entry->b | IS_JOINT) == 0)
		return true;
	/* Released meanwhile, by a program that is wrong: that gives back what the joint has now. */
	charge_anyway(memory.device, memory.bytes, memory.kind);
	shared_let_go(joint, true);
	return true;
}

void mapped_share(CUmemGenericAllocationHandle handle, int fd, uint64_t key)
{
	struct table_entry entry;
	uint32_t steps = 0;
	unsigned joint;
	LOCK_SCOPE(&share_lock);

	if (table_get(&handles, handle, &entry) != 0)
		return;
	joint = (unsigned)(entry.b >> 32);
	if (entry.b & IS_JOINT) {
		steps = shared_steps(joint);
		if (fd >= 0 && !mark_again(joint, steps, fd))
			stay(handle);
	} else if (entry.b & IS_FOREIGN || !make_joint(handle, &entry, fd, key)) {
		if (fd >= 0)
			stay(handle);
	}
}

/* Counts one more reference; *ret_is_new says whether it is the first, whose b is to be set. */
static CUresult count_imported(CUmemGenericAllocationHandle handle, uint64_t b, bool *ret_is_new)
{
	struct table_entry entry;

	if (table_count_up(&handles, handle, true, &entry) < 0) {
		log_error("no memory for our own tables, so an import is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_is_new = entry.a == 1 && table_change_b(&handles, handle, 0, b) == 0;
	return CUDA_SUCCESS;
}

CUresult mapped_keep_joint(CUmemGenericAllocationHandle handle, unsigned joint)
{
	bool is_new = false;
	CUresult r = count_imported(handle, (uint64_t)joint << 32 | IS_JOINT, &is_new);

	/* The same handle again: one hold of ours is enough for all of its references. */
	if (r == CUDA_SUCCESS && !is_new)
		shared_let_go(joint, false);
	return r;
}

CUresult mapped_keep_foreign(
	CUmemGenericAllocationHandle handle, struct device *device, uint64_t bytes)
{
	bool is_new = false;
	CUresult r = count_imported(handle, IS_FOREIGN | (uint64_t)device->ordinal, &is_new);

	if (r != CUDA_SUCCESS || !is_new || bytes == 0)
		return r;
	r = mapped_charge_foreign(handle, bytes);
	if (r != CUDA_SUCCESS) {
		struct mapped_reference reference = mapped_release_begin(handle);

		mapped_release_end(&reference, true);
	}
	return r;
}

CUresult mapped_charge_foreign(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	struct table_entry entry;
	CUresult r;

	if (table_get(&handles, handle, &entry) != 0 || !(entry.b & IS_FOREIGN) || entry.b >> 32)
		return CUDA_SUCCESS;
	r = charge_reserve(state_device((CUdevice)(entry.b & 0xff)), bytes, CHARGE_SHARED, &charge);
	/* Where another thread was faster, its charge is enough. */
	if (r == CUDA_SUCCESS && table_change_b(&handles, handle, entry.b,
					 entry.b | (uint64_t)charge.units << 32) == 0)
		charge_take(&charge);
	return r;
}

void mapped_may_stay(CUdeviceptr at, uint64_t bytes)
{
	CUdeviceptr end = at + bytes;
	struct table_entry mapping;

	while (next_mapping(&at, end, &mapping))
		stay(mapping.a);
}

void mapped_reset_after_fork(void)
{
	table_forget(&handles);
	table_forget(&mappings);
	share_lock = (struct lock)LOCK_INIT;
}

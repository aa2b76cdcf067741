/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, handles, mappings. */
#include "sim/cuda/model/memory/vmm.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/ipc.h"
#include "sim/cuda/model/memory/multicast.h"

/*
 * A handle's memory lives as long as a reference of the program or a mapping does. It is shared
 * anonymous memory, of which each mapping is one more view; a descriptor for each handle was
 * rejected, as programs make more handles than they may open files.
 */

struct handle {
	CUmemAllocationProp prop;
	size_t size;
	struct device *device; /* NULL: host memory */
	void *backing;	       /* NULL until first mapped */
	uint32_t references;   /* of the program */
	uint32_t mappings;
	uint32_t index; /* in handles[] */
	bool is_kept;
	struct machine_kept kept;
	struct multicast *multicast; /* NULL: memory */
};

struct mapping {
	CUdeviceptr base;
	size_t size;
	CUmemAccess_flags access;
	struct handle *handle;
	struct mapping *next; /* by address */
};

struct reservation {
	struct owner owner;
	CUdeviceptr base;
	size_t size;
	struct mapping *mappings;
};

/* Handles are numbers that are used again at once when their memory is gone, as addresses are: the last one first. */
#define HANDLE_STEP_BITS 24
static struct entry {
	struct handle *handle;
	uint32_t next_free;
} * handles;
static uint32_t handle_count, handle_room, first_free = UINT32_MAX;

static CUmemGenericAllocationHandle handle_number(const struct handle *handle)
{
	return (CUmemGenericAllocationHandle)(handle->index + 1) << HANDLE_STEP_BITS;
}

/* The handle of a number while the program holds a reference; NULL otherwise. */
static struct handle *find_handle(CUmemGenericAllocationHandle number)
{
	uint64_t index = (number >> HANDLE_STEP_BITS) - 1;
	struct handle *handle = index < handle_count ? handles[index].handle : NULL;

	return handle && handle_number(handle) == number && handle->references > 0 ? handle : NULL;
}

static bool number_handle(struct handle *handle)
{
	uint32_t index = first_free;

	if (index != UINT32_MAX) {
		first_free = handles[index].next_free;
	} else {
		if (handle_count == handle_room) {
			uint32_t room = handle_room > 0 ? handle_room * 2 : 64;
			struct entry *more = realloc(handles, room * sizeof(*more));

			if (!more)
				return false;
			handles = more;
			handle_room = room;
		}
		index = handle_count++;
	}
	handles[index].handle = handle;
	handle->index = index;
	return true;
}

/* Gives the memory back when nothing holds it any more. */
static void drop_handle(struct handle *handle)
{
	struct entry *entry = &handles[handle->index];
	struct handle *bound;

	if (handle->references > 0 || handle->mappings > 0)
		return;
	while (handle->multicast && (bound = multicast_end(handle->multicast)))
		vmm_let_go(bound);
	if (handle->backing)
		munmap(handle->backing, handle->size);
	if (handle->is_kept)
		ipc_drop(handle->kept.index);
	else if (handle->device)
		machine_shrink(driver.machine, handle->device->index, MACHINE_VMM, handle->size);
	entry->handle = NULL;
	entry->next_free = first_free;
	first_free = handle->index;
	free(handle);
}

struct handle *vmm_hold(CUmemGenericAllocationHandle number, unsigned long long offset)
{
	struct handle *handle = find_handle(number);

	if (!handle || offset >= handle->size)
		return NULL;
	handle->mappings++;
	return handle;
}

void vmm_let_go(struct handle *handle)
{
	handle->mappings--;
	drop_handle(handle);
}

static struct mapping *find_mapping(const struct reservation *reservation, CUdeviceptr address)
{
	struct mapping *mapping = reservation->mappings;

	while (mapping && address >= mapping->base + mapping->size)
		mapping = mapping->next;
	return mapping && address >= mapping->base ? mapping : NULL;
}

/* The reservation that holds all of the range, or NULL. */
static struct reservation *find_reservation(CUdeviceptr base, size_t size)
{
	struct owner *owner = address_find_owner(base);
	struct reservation *reservation = (struct reservation *)owner;

	if (!owner || owner->type != OWNER_RESERVATION ||
		size > reservation->base + reservation->size - base)
		return NULL;
	return reservation;
}

static bool find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent)
{
	struct mapping *mapping = find_mapping((struct reservation *)owner, address);

	if (!mapping)
		return false;
	*ret_extent = (struct extent){.base = mapping->base,
		.bytes = mapping->size,
		.device = mapping->handle->device,
		.is_accessible = mapping->access != CU_MEM_ACCESS_FLAGS_PROT_NONE};
	return true;
}

CUresult vmm_check(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return driver_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

bool vmm_is_aligned(uint64_t value)
{
	return value % driver.board->chunk_bytes == 0 && value % ADDRESS_UNIT == 0;
}

CUresult vmm_reserve(size_t size, size_t alignment, CUdeviceptr *ret_base)
{
	static const struct owner_ops ops = {.find = find};
	struct reservation *reservation = calloc(1, sizeof(*reservation));

	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reservation->owner = (struct owner){OWNER_RESERVATION, &ops};
	reservation->size = size;
	if (address_map(size, alignment, PROT_NONE, &reservation->base) != 0) {
		free(reservation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (address_set_owner(reservation->base, size, &reservation->owner) != 0) {
		address_unmap(reservation->base, size);
		free(reservation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_base = reservation->base;
	return CUDA_SUCCESS;
}

CUresult vmm_unreserve(CUdeviceptr base, size_t size)
{
	struct reservation *reservation = find_reservation(base, size);

	if (!reservation || reservation->base != base || reservation->size != size ||
		reservation->mappings)
		return CUDA_ERROR_INVALID_VALUE;
	address_set_owner(base, size, NULL);
	address_unmap(base, size);
	free(reservation);
	return CUDA_SUCCESS;
}

CUresult vmm_create(
	size_t size, const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *ret_number)
{
	bool is_on_device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct device *device = is_on_device ? driver_device(prop->location.id) : NULL;
	struct handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->prop = *prop;
	handle->size = size;
	handle->references = 1;
	handle->device = device;
	if (device && machine_grow(driver.machine, device->index, MACHINE_VMM, size) != 0) {
		free(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!number_handle(handle)) {
		if (device)
			machine_shrink(driver.machine, device->index, MACHINE_VMM, size);
		free(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_number = handle_number(handle);
	return CUDA_SUCCESS;
}

CUresult vmm_create_multicast(
	const CUmulticastObjectProp *object, CUmemGenericAllocationHandle *ret_number)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = (CUmemAllocationHandleType)object->handleTypes};
	struct multicast *multicast = multicast_new(object->numDevices);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (multicast)
		result = vmm_create(object->size, &prop, ret_number);
	if (result == CUDA_SUCCESS)
		find_handle(*ret_number)->multicast = multicast;
	else if (multicast)
		multicast_end(multicast);
	return result;
}

struct multicast *vmm_multicast(CUmemGenericAllocationHandle number, size_t offset, size_t size)
{
	struct handle *handle = find_handle(number);

	return handle && offset <= handle->size && size <= handle->size - offset ? handle->multicast
										 : NULL;
}

CUresult vmm_release(CUmemGenericAllocationHandle number)
{
	struct handle *handle = find_handle(number);

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	handle->references--;
	drop_handle(handle);
	return CUDA_SUCCESS;
}

CUresult vmm_get_prop(CUmemGenericAllocationHandle number, CUmemAllocationProp *ret_prop)
{
	const struct handle *handle = find_handle(number);

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_prop = handle->prop;
	return CUDA_SUCCESS;
}

/* One more view of the handle's memory, at `base`. */
static bool view(struct handle *handle, CUdeviceptr base)
{
	void *place = (void *)(uintptr_t)base;

	if (!handle->backing) {
		void *backing = mmap(NULL, handle->size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (backing == MAP_FAILED)
			return false;
		handle->backing = backing;
	}
	/* An old size of 0 duplicates a shared mapping. */
	return mremap(handle->backing, 0, handle->size, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
		       place &&
	       mprotect(place, handle->size, PROT_NONE) == 0;
}

/* Plain inaccessible addresses again. */
static void unview(CUdeviceptr base, size_t size)
{
	void *place = (void *)(uintptr_t)base;

	if (mmap(place, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		    -1, 0) == MAP_FAILED)
		mprotect(place, size, PROT_NONE);
}

CUresult vmm_map(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle number,
	unsigned long long flags)
{
	struct reservation *reservation = find_reservation(base, size);
	struct handle *handle = find_handle(number);
	struct mapping *mapping;
	struct mapping **place;

	if (!reservation || !handle || size == 0 || flags != 0 || !vmm_is_aligned(base) ||
		!vmm_is_aligned(size) || !vmm_is_aligned(offset))
		return CUDA_ERROR_INVALID_VALUE;
	/* As it is documented; and measured: a handle is mapped whole or not at all. */
	if (offset > handle->size || size > handle->size - offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (offset != 0 || size != handle->size)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (place = &reservation->mappings; *place && (*place)->base + (*place)->size <= base;
		place = &(*place)->next)
		;
	if (*place && (*place)->base < base + size)
		return CUDA_ERROR_INVALID_VALUE;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping || !view(handle, base)) {
		unview(base, size);
		free(mapping);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mapping->base = base;
	mapping->size = size;
	mapping->access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	mapping->handle = handle;
	mapping->next = *place;
	*place = mapping;
	handle->mappings++;
	return CUDA_SUCCESS;
}

CUresult vmm_unmap(CUdeviceptr base, size_t size)
{
	struct reservation *reservation = find_reservation(base, size);
	struct mapping **place;

	if (!reservation || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Measured: part of a mapping is refused, a range without mappings is not. */
	for (struct mapping *mapping = reservation->mappings; mapping; mapping = mapping->next) {
		bool is_touched =
			mapping->base < base + size && base < mapping->base + mapping->size;

		if (is_touched &&
			(mapping->base < base || mapping->base + mapping->size > base + size))
			return CUDA_ERROR_INVALID_VALUE;
	}
	place = &reservation->mappings;
	while (*place) {
		struct mapping *mapping = *place;

		if (mapping->base < base || mapping->base >= base + size) {
			place = &mapping->next;
			continue;
		}
		*place = mapping->next;
		unview(mapping->base, mapping->size);
		mapping->handle->mappings--;
		drop_handle(mapping->handle);
		free(mapping);
	}
	return CUDA_SUCCESS;
}

CUresult vmm_set_access(CUdeviceptr base, size_t size, CUmemAccess_flags access)
{
	struct reservation *reservation = find_reservation(base, size);
	CUdeviceptr end = base + size;

	if (!reservation)
		return CUDA_ERROR_INVALID_VALUE;
	for (CUdeviceptr at = base; at < end;) {
		struct mapping *mapping = find_mapping(reservation, at);

		if (!mapping || mapping->base < base || mapping->base + mapping->size > end)
			return CUDA_ERROR_INVALID_VALUE;
		at = mapping->base + mapping->size;
	}
	for (CUdeviceptr at = base; at < end;) {
		struct mapping *mapping = find_mapping(reservation, at);

		mapping->access = access;
		/* Read-only for the device is still written by nobody but us: copies check it. */
		mprotect((void *)(uintptr_t)mapping->base, mapping->size,
			access == CU_MEM_ACCESS_FLAGS_PROT_NONE ? PROT_NONE
								: PROT_READ | PROT_WRITE);
		at = mapping->base + mapping->size;
	}
	return CUDA_SUCCESS;
}

static struct mapping *mapping_at(CUdeviceptr address)
{
	const struct reservation *reservation = find_reservation(address, 1);

	return reservation ? find_mapping(reservation, address) : NULL;
}

CUresult vmm_get_access(CUdeviceptr address, unsigned long long *ret_flags)
{
	const struct mapping *mapping = mapping_at(address);

	if (!mapping)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = mapping->access;
	return CUDA_SUCCESS;
}

CUresult vmm_retain(CUdeviceptr address, CUmemGenericAllocationHandle *ret_number)
{
	struct mapping *mapping = mapping_at(address);

	if (!mapping)
		return CUDA_ERROR_INVALID_VALUE;
	mapping->handle->references++;
	*ret_number = handle_number(mapping->handle);
	return CUDA_SUCCESS;
}

CUresult vmm_keep_multicast(CUmemGenericAllocationHandle number, CUmemAllocationHandleType type)
{
	struct handle *handle = find_handle(number);

	if (!handle || !handle->multicast || !(handle->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	handle->mappings++;
	return CUDA_SUCCESS;
}

CUresult vmm_keep(CUmemGenericAllocationHandle number, CUmemAllocationHandleType type,
	struct machine_kept *ret_kept)
{
	struct handle *handle = find_handle(number);

	if (!handle || !(handle->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle->device)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!handle->is_kept)
		handle->is_kept = ipc_keep(handle->device, MACHINE_VMM, handle->size,
			MACHINE_SHOWN_MAKER, &handle->kept);
	*ret_kept = handle->kept;
	return handle->is_kept ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult vmm_adopt(const struct machine_kept *kept, CUmemAllocationHandleType type,
	CUmemGenericAllocationHandle *ret_number)
{
	struct handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->device = driver_find_index(kept->device);
	handle->size = kept->bytes;
	handle->references = 1;
	handle->is_kept = true;
	handle->kept = *kept;
	if (!handle->device || !number_handle(handle)) {
		free(handle);
		return CUDA_ERROR_INVALID_DEVICE;
	}
	handle->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = type,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = handle->device->ordinal}};
	*ret_number = handle_number(handle);
	return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multicast objects, and the memory that is bound to them.
 *
 * What is bound stays until it is unbound, by the device and the offset of the binding. NVIDIA's open kernel modules
 * of driver 535 keep a duplicate of it until then, or until the last process has let go of the object; in those of
 * 575 it ends with this process's handle of the object or of the memory, too (mem_multicast_fabric.c). So it is
 * charged as the older ones keep it. A binding is written down after the driver made it, and taken out before the
 * driver is asked to end it. So one that is taken out was there when the driver was asked, and is gone where that
 * succeeds. One that cannot be written down keeps its reference until the process ends.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/multicast.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/table.h"
#include "tenant/slice/quota.h"

/* What an object and its parts are a multiple of (cuMulticastGetGranularity), so that 32 bits are enough for them. */
#define STEP_BYTES  UINT64_C(0x200000)

#define DEVICE_BITS 8

/*
 * key: a number, and the device in the lowest bits; a: the object; b: offset and size in steps; c: the memory's handle; d: the
 * serial numbers of the memory's holding and of the object's
 */
static struct table bindings;

/* The object with this serial number; and, for one binding, where. */
struct place {
	CUmemGenericAllocationHandle object;
	uint32_t serial;
	uint64_t device, steps;
};

static bool is_of_object(const struct table_entry *entry, uint64_t what)
{
	const struct place *place = (const struct place *)(uintptr_t)what;

	return entry->a == place->object && (uint32_t)entry->d == place->serial;
}

static bool is_at(const struct table_entry *entry, uint64_t what)
{
	const struct place *place = (const struct place *)(uintptr_t)what;

	return is_of_object(entry, what) && entry->b == place->steps &&
	       (entry->key & ((1 << DEVICE_BITS) - 1)) == place->device;
}

static bool in_steps(size_t offset, size_t size, uint64_t *ret_steps)
{
	*ret_steps = (uint64_t)offset / STEP_BYTES << 32 | size / STEP_BYTES;
	return offset % STEP_BYTES == 0 && size % STEP_BYTES == 0 &&
	       offset / STEP_BYTES <= UINT32_MAX && size / STEP_BYTES <= UINT32_MAX;
}

/* The device that the binding is of: by that it is unbound. */
static bool find_device(const struct multicast_part *part, CUmemGenericAllocationHandle memory,
	uint64_t *ret_device)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	if (!part->is_named && (!cuda.cuMemGetAllocationPropertiesFromHandle ||
				       cuda.cuMemGetAllocationPropertiesFromHandle(
					       &properties, memory) != CUDA_SUCCESS))
		return false;
	*ret_device = (unsigned int)(part->is_named ? part->device : properties.location.id);
	return *ret_device >> DEVICE_BITS == 0;
}

static bool write_down(const struct multicast_part *part, uint32_t object_serial,
	const struct mapped_reference *memory)
{
	static _Atomic uint64_t last;
	struct table_entry entry = {.a = part->object,
		.c = memory->handle,
		.d = (uint64_t)memory->serial << 32 | object_serial};
	uint64_t device;

	if (!object_serial || !in_steps(part->offset, part->size, &entry.b) ||
		!find_device(part, memory->handle, &device))
		return false;
	/* relaxed: each gets another one */
	entry.key = (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1) << DEVICE_BITS |
		    device;
	return table_put(&bindings, entry) == 0;
}

static void say_it_stays(void)
{
	log_info("bound memory stays counted until the process ends");
}

CUresult multicast_create(
	const CUmulticastObjectProp *properties, CUmemGenericAllocationHandle *ret_object)
{
	struct holding holding = {.references = 1, .flags = HOLDING_OBJECT};
	uint64_t since = charge_since();
	CUresult r = cuda.cuMulticastCreate(ret_object, properties);

	FAULT("multicast: the driver gave");
	if (r != CUDA_SUCCESS || holding_put(HOLDING_CREATED, *ret_object, holding, since) == 0)
		return r;
	log_error("no memory for our own tables, so a multicast object is refused");
	mapped_let_go(*ret_object);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether others may have the object, so that memory could be kept when its process has ended. */
static bool is_elsewhere(const struct holding *object)
{
	return !object->serial || object->flags & HOLDING_MAY_STAY;
}

static CUresult ask_driver(const struct multicast_part *part, CUmemGenericAllocationHandle memory)
{
	if (part->is_named)
		return cuda.cuMulticastBindMem_v2(part->object, part->device, part->offset, memory,
			part->memory_offset, part->size, part->flags);
	return cuda.cuMulticastBindMem(
		part->object, part->offset, memory, part->memory_offset, part->size, part->flags);
}

/* The driver's call, between the pins of both. */
static CUresult bind(const struct multicast_part *part, const struct holding *object,
	const struct mapped_reference *memory)
{
	CUresult r = CUDA_ERROR_NOT_SUPPORTED;

	if (is_elsewhere(object) && !quota_may_export())
		log_info("the slice's share says that no memory is bound to what others have");
	else
		r = ask_driver(part, memory->handle);
	FAULT("multicast: bound");
	return r;
}

CUresult multicast_bind(const struct multicast_part *part, const struct mapped_reference *reference)
{
	struct holding object = {.serial = 0};
	uint64_t device;
	CUresult r;

	if (holding_pin(HOLDING_CREATED, part->object, &object) != 0)
		log_debug("a multicast object is not known");
	r = bind(part, &object, reference);
	if (!mapped_refer_end(reference, r == CUDA_SUCCESS)) {
		/* Another thread has ended it, and other memory has its handle. */
		if (!find_device(part, reference->handle, &device) ||
			cuda.cuMulticastUnbind(part->object, (CUdevice)device, part->offset,
				part->size) != CUDA_SUCCESS)
			log_error("memory stays bound that nobody is charged for");
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS && reference->serial && !write_down(part, object.serial, reference))
		say_it_stays();
	if (object.serial)
		holding_unpin(HOLDING_CREATED, part->object, object.serial);
	return r;
}

static void end_reference(const struct table_entry *binding)
{
	holding_drop(HOLDING_CREATED, binding->c, (uint32_t)(binding->d >> 32));
}

CUresult multicast_unbind(
	CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t size)
{
	struct table_entry entry = {.key = 0};
	struct table_cursor cursor = {.shard = 0};
	struct place place = {.object = object, .device = (unsigned int)device};
	struct holding holding;
	bool is_written, is_there;
	CUresult r;

	if (holding_pin(HOLDING_CREATED, object, &holding) != 0)
		return cuda.cuMulticastUnbind(object, device, offset, size);
	place.serial = holding.serial;
	is_written = in_steps(offset, size, &place.steps) &&
		     table_take_next(&bindings, is_at, (uintptr_t)&place, &cursor, &entry) == 0;
	r = cuda.cuMulticastUnbind(object, device, offset, size);
	FAULT("multicast: unbound");
	if (is_written && r != CUDA_SUCCESS && table_put(&bindings, entry) < 0)
		say_it_stays();
	/* Where the number is another object's by now, nobody knows what the driver has unbound. */
	is_there = holding_unpin(HOLDING_CREATED, object, holding.serial);
	if (is_written && r == CUDA_SUCCESS && is_there)
		end_reference(&entry);
	return r;
}

void multicast_object_ended(CUmemGenericAllocationHandle object, uint32_t serial)
{
	struct place place = {.object = object, .serial = serial};
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_next(&bindings, is_of_object, (uintptr_t)&place, &cursor, &entry) == 0)
		end_reference(&entry);
}

void multicast_reset_after_fork(void)
{
	table_forget(&bindings);
}

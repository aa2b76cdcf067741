/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with other processes. */
#include "sim/cuda/model/memory/share.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/lookup.h"

/*
 * What is shared is the place in the machine's books, and with it how long memory is held. The bytes
 * themselves are not: whoever opens memory sees zeroes of its own.
 */

_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "ticket");

/* Memory of another process at an address of this one's. */
struct opened {
	struct owner owner;
	CUdeviceptr base; /* of the mapping; the allocation begins at the offset */
	size_t offset, bytes, mapped_bytes;
	struct device *device;
	struct context *context;
	uint32_t index, turn;
	uint32_t opens;
	bool is_held; /* opened by its own handle; else by a pool's, and freed like its memory */
	struct opened *next;
};
static struct opened *all_opened;

static uint16_t holds[MACHINE_KEPT_MAX];

struct device *share_device(int index)
{
	for (int i = 0; i < driver.device_count; i++) {
		if (driver.device[i].index == index)
			return &driver.device[i];
	}
	return NULL;
}

bool share_keep(struct device *device, enum machine_kind kind, uint64_t bytes,
	enum machine_shown shown, struct machine_kept *ret_kept)
{
	if (machine_keep(driver.machine, device->index, kind, bytes, shown, ret_kept) != 0)
		return false;
	holds[ret_kept->index] = 1;
	return true;
}

bool share_hold(uint32_t index, uint32_t turn, bool is_from_maker, struct machine_kept *ret_kept)
{
	if (machine_kept_hold(driver.machine, index, turn, is_from_maker, ret_kept) != 0)
		return false;
	holds[index]++;
	return true;
}

void share_drop(uint32_t index)
{
	if (--holds[index] == 0)
		machine_kept_drop(driver.machine, index);
}

bool share_open(struct context *context, struct device *device, const struct ticket *ticket,
	bool is_held, CUdeviceptr *ret_base)
{
	struct opened *opened = calloc(1, sizeof(*opened));

	if (!opened)
		return false;
	opened->owner.type = OWNER_OPENED;
	opened->offset = ticket->offset;
	opened->bytes = ticket->bytes;
	opened->mapped_bytes = ticket->offset + ticket->bytes;
	opened->device = device;
	opened->context = context;
	opened->index = ticket->index;
	opened->turn = ticket->turn;
	opened->opens = 1;
	opened->is_held = is_held;
	if (address_map(opened->mapped_bytes, 0, PROT_READ | PROT_WRITE, &opened->base) != 0 ||
		address_set_owner(opened->base, opened->mapped_bytes, &opened->owner) != 0) {
		free(opened);
		return false;
	}
	opened->next = all_opened;
	all_opened = opened;
	*ret_base = opened->base + opened->offset;
	return true;
}

static void close_at(struct opened *opened)
{
	struct opened **link = &all_opened;

	while (*link != opened)
		link = &(*link)->next;
	*link = opened->next;
	address_set_owner(opened->base, opened->mapped_bytes, NULL);
	address_unmap(opened->base, opened->mapped_bytes);
	if (opened->is_held)
		share_drop(opened->index);
	free(opened);
}

bool share_find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent)
{
	struct opened *opened = (struct opened *)owner;

	if (address < opened->base + opened->offset ||
		address >= opened->base + opened->mapped_bytes)
		return false;
	*ret_extent = (struct extent){.base = opened->base + opened->offset,
		.bytes = opened->bytes,
		.device = opened->device,
		.is_accessible = true};
	return true;
}

CUresult share_free(struct owner *owner, CUdeviceptr base)
{
	struct opened *opened = (struct opened *)owner;

	if (opened->is_held || opened->base + opened->offset != base)
		return CUDA_ERROR_INVALID_VALUE;
	close_at(opened);
	return CUDA_SUCCESS;
}

void share_clear(struct context *context)
{
	struct opened *opened = all_opened;

	while (opened) {
		struct opened *next = opened->next;

		if (opened->context == context)
			close_at(opened);
		opened = next;
	}
}

static CUresult get_ipc_handle(CUipcMemHandle *handle, CUdeviceptr dptr)
{
	struct owner *owner = address_find_owner(dptr);
	struct ticket ticket;
	struct extent extent;
	uint32_t index, turn;

	if (!owner || !lookup_extent(dptr, &extent) || !heap_keep(owner, &index, &turn))
		return CUDA_ERROR_INVALID_VALUE;
	memset(handle, 0, sizeof(*handle));
	ticket = (struct ticket){.magic = TICKET_MAGIC,
		.index = index,
		.turn = turn,
		.offset = owner->type == OWNER_BLOCK ? extent.base % ADDRESS_UNIT : 0,
		.bytes = extent.bytes,
		.pid = getpid()};
	memcpy(handle, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr dptr), (handle, dptr))
{
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	result = get_ipc_handle(handle, dptr);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

static struct opened *find_opened(const struct context *context, const struct ticket *ticket)
{
	struct opened *opened = all_opened;

	while (opened &&
		(!opened->is_held || opened->context != context || opened->index != ticket->index ||
			opened->turn != ticket->turn || opened->offset != ticket->offset))
		opened = opened->next;
	return opened;
}

static CUresult open_ipc(
	struct context *context, const struct ticket *ticket, CUdeviceptr *ret_base)
{
	struct opened *opened = find_opened(context, ticket);
	struct machine_kept kept;
	struct device *device;

	if (opened) {
		opened->opens++;
		*ret_base = opened->base + opened->offset;
		return CUDA_SUCCESS;
	}
	if (!share_hold(ticket->index, ticket->turn, true, &kept))
		return CUDA_ERROR_INVALID_VALUE;
	device = share_device(kept.device);
	if (device && share_open(context, device, ticket, true, ret_base))
		return CUDA_SUCCESS;
	share_drop(ticket->index);
	return device ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult open_handle(CUdeviceptr *dptr, const CUipcMemHandle *handle, unsigned int flags)
{
	struct context *context;
	struct ticket ticket;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&ticket, handle, sizeof(ticket));
	if (!dptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || ticket.magic != TICKET_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&driver.memory_lock);
	result = open_ipc(context, &ticket, dptr);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuIpcOpenMemHandle, (CUdeviceptr * dptr, CUipcMemHandle handle, unsigned int flags),
	(dptr, handle, flags))
{
	return open_handle(dptr, &handle, flags);
}

ENTRY_BODY(cuIpcOpenMemHandle_v2, (CUdeviceptr * dptr, CUipcMemHandle handle, unsigned int flags),
	(dptr, handle, flags))
{
	return open_handle(dptr, &handle, flags);
}

ENTRY_BODY(cuIpcCloseMemHandle, (CUdeviceptr dptr), (dptr))
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct opened *opened;
	struct owner *owner;

	pthread_mutex_lock(&driver.memory_lock);
	owner = address_find_owner(dptr);
	opened = (struct opened *)owner;
	if (owner && owner->type == OWNER_OPENED && opened->is_held &&
		dptr == opened->base + opened->offset) {
		if (--opened->opens == 0)
			close_at(opened);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another process at an address of this one. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/ipc.h"

/*
 * What is shared is the place in the machine's books, and with it how long memory is held. The bytes
 * themselves are not: whoever opens memory sees zeroes of its own.
 */

/* Memory of another process at an address of this one's. */
struct opened {
	struct owner owner;
	CUdeviceptr base; /* of the mapping; the allocation begins at the offset */
	size_t offset, bytes, mapped_bytes;
	struct device *device;
	struct context *context;
	uint32_t index, generation;
	uint32_t opens;
	bool is_held; /* opened by its own handle; else by a pool's, and freed like its memory */
	struct opened *next;
};
static struct opened *all_opened;

static void close_at(struct opened *opened)
{
	struct opened **link = &all_opened;

	while (*link != opened)
		link = &(*link)->next;
	*link = opened->next;
	address_set_owner(opened->base, opened->mapped_bytes, NULL);
	address_unmap(opened->base, opened->mapped_bytes);
	if (opened->is_held)
		ipc_drop(opened->index);
	free(opened);
}

static bool find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent)
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

/* Only for what was imported from a pool. */
static CUresult free_now(struct owner *owner, CUdeviceptr base)
{
	struct opened *opened = (struct opened *)owner;

	if (opened->is_held || opened->base + opened->offset != base)
		return CUDA_ERROR_INVALID_VALUE;
	close_at(opened);
	return CUDA_SUCCESS;
}

static CUresult free_at(struct owner *owner, CUdeviceptr base, uint64_t at_ns)
{
	return free_now(owner, base);
}

bool ipc_open(struct context *context, struct device *device, const struct ticket *ticket,
	bool is_held, CUdeviceptr *ret_base)
{
	static const struct owner_ops ops = {find, free_now, free_at};
	struct opened *opened = calloc(1, sizeof(*opened));

	if (!opened)
		return false;
	opened->owner = (struct owner){OWNER_OPENED, &ops};
	opened->offset = ticket->offset;
	opened->bytes = ticket->bytes;
	opened->mapped_bytes = ticket->offset + ticket->bytes;
	opened->device = device;
	opened->context = context;
	opened->index = ticket->index;
	opened->generation = ticket->generation;
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

void ipc_clear(struct context *context)
{
	struct opened *opened = all_opened;

	while (opened) {
		struct opened *next = opened->next;

		if (opened->context == context)
			close_at(opened);
		opened = next;
	}
}

static struct opened *find_opened(const struct context *context, const struct ticket *ticket)
{
	struct opened *opened = all_opened;

	while (opened &&
		(!opened->is_held || opened->context != context || opened->index != ticket->index ||
			opened->generation != ticket->generation ||
			opened->offset != ticket->offset))
		opened = opened->next;
	return opened;
}

/* A size below the memory's is believed (H200, driver 580). Whether a larger one is was not tried. */
static bool is_within(const struct ticket *ticket, const struct machine_kept *kept)
{
	return ticket->bytes > 0 && ticket->offset < kept->bytes &&
	       ticket->bytes <= kept->bytes - ticket->offset;
}

CUresult ipc_open_held(struct context *context, const struct ticket *ticket, CUdeviceptr *ret_base)
{
	struct opened *opened = find_opened(context, ticket);
	struct machine_kept kept;
	struct device *device;

	if (opened) {
		opened->opens++;
		*ret_base = opened->base + opened->offset;
		return CUDA_SUCCESS;
	}
	if (!ipc_hold(ticket->index, ticket->generation, true, &kept))
		return CUDA_ERROR_INVALID_VALUE;
	device = driver_find_index(kept.device);
	if (!is_within(ticket, &kept)) {
		ipc_drop(ticket->index);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (device && ipc_open(context, device, ticket, true, ret_base))
		return CUDA_SUCCESS;
	ipc_drop(ticket->index);
	return device ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_DEVICE;
}

CUresult ipc_close(CUdeviceptr base)
{
	struct owner *owner = address_find_owner(base);
	struct opened *opened = (struct opened *)owner;

	if (!owner || owner->type != OWNER_OPENED || !opened->is_held ||
		base != opened->base + opened->offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (--opened->opens == 0)
		close_at(opened);
	return CUDA_SUCCESS;
}

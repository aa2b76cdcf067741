/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events that another process opens by a handle. */
#include <string.h>
#include <unistd.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/ipc.h"
#include "sim/cuda/model/memory/lookup.h"
#include "sim/cuda/model/time/timeline.h"

_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "ticket");

static CUresult get_ipc_handle(CUipcMemHandle *handle, CUdeviceptr dptr)
{
	struct owner *owner = address_find_owner(dptr);
	struct ticket ticket;
	struct extent extent;
	uint32_t index, generation;

	if (!owner || !lookup_extent(dptr, &extent) || !heap_keep(owner, &index, &generation))
		return CUDA_ERROR_INVALID_VALUE;
	memset(handle, 0, sizeof(*handle));
	ticket = (struct ticket){.magic = TICKET_MEMORY,
		.index = index,
		.generation = generation,
		.offset = owner->type == OWNER_BLOCK ? extent.base % ADDRESS_UNIT : 0,
		.bytes = extent.bytes,
		.pid = getpid()};
	memcpy(handle, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr dptr), (handle, dptr))
{
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return get_ipc_handle(handle, dptr);
}

static CUresult open_handle(CUdeviceptr *dptr, const CUipcMemHandle *handle, unsigned int flags)
{
	struct context *context;
	struct ticket ticket;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&ticket, handle, sizeof(ticket));
	if (!dptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || ticket.magic != TICKET_MEMORY)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	LOCK_SCOPE(&driver.memory_lock);
	return ipc_open_held(context, &ticket, dptr);
}

ENTRY_CALL(cuIpcOpenMemHandle, (CUdeviceptr * dptr, CUipcMemHandle handle, unsigned int flags),
	open_handle(dptr, &handle, flags))

ENTRY_CALL(cuIpcOpenMemHandle_v2, (CUdeviceptr * dptr, CUipcMemHandle handle, unsigned int flags),
	open_handle(dptr, &handle, flags))

ENTRY_BODY(cuIpcCloseMemHandle, (CUdeviceptr dptr), (dptr))
{
	LOCK_SCOPE(&driver.memory_lock);
	return ipc_close(dptr);
}

#define EVENT_TICKET_MAGIC UINT64_C(0x5645544b43495456)
struct event_ticket {
	uint64_t magic;
	struct shared_event shared;
	int32_t pid;
};
_Static_assert(sizeof(struct event_ticket) <= sizeof(CUipcEventHandle), "event ticket");

ENTRY_BODY(cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent of), (handle, of))
{
	struct event *event = timeline_find_event(of);
	struct event_ticket ticket;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!handle || !(event->flags & CU_EVENT_INTERPROCESS) || event->is_opened)
		return CUDA_ERROR_INVALID_VALUE;
	if (!event->is_shared && !shared_event_make(driver.machine, &event->shared))
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->is_shared = true;
	if (event->is_recorded)
		timeline_mark(event, timeline_event_ns(event));
	ticket = (struct event_ticket){
		.magic = EVENT_TICKET_MAGIC, .shared = event->shared, .pid = getpid()};
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(
	cuIpcOpenEventHandle, (CUevent * ret_event, CUipcEventHandle handle), (ret_event, handle))
{
	struct event_ticket ticket;
	struct event *event;

	memcpy(&ticket, &handle, sizeof(ticket));
	if (!ret_event || ticket.magic != EVENT_TICKET_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!shared_event_is_there(driver.machine, &ticket.shared))
		return CUDA_ERROR_INVALID_HANDLE;
	event = timeline_new_event(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->shared = ticket.shared;
	event->is_shared = event->is_opened = true;
	*ret_event = (CUevent)event;
	return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Events that processes share. */
#include "sim/machine/shared_event.h"

#include "sim/machine/reap.h"
#include "sim/machine/state_file.h"

static bool is_maker_there(const struct layout *layout, const struct layout_shared_event *event)
{
	const struct layout_slot *maker = &layout->slot[event->maker];

	return layout_is_used(maker) && maker->start_time == event->maker_start_time;
}

/* Under the lock: its place, or NULL. */
static struct layout_shared_event *find(struct machine *machine, const struct shared_event *event)
{
	struct layout_shared_event *at;

	if (event->index >= LAYOUT_SHARED_EVENTS)
		return NULL;
	at = &machine->layout->shared_event[event->index];
	return at->is_used && at->generation == event->generation &&
			       is_maker_there(machine->layout, at)
		       ? at
		       : NULL;
}

bool shared_event_make(struct machine *machine, struct shared_event *ret_event)
{
	struct layout *layout = machine->layout;
	uint32_t i = 0;
	MACHINE_SCOPE(machine);

	while (i < LAYOUT_SHARED_EVENTS && layout->shared_event[i].is_used &&
		is_maker_there(layout, &layout->shared_event[i]))
		i++;
	if (i == LAYOUT_SHARED_EVENTS || machine->slot < 0)
		return false;
	*ret_event = (struct shared_event){i, layout->shared_event[i].generation + 1};
	layout->shared_event[i] = (struct layout_shared_event){.is_used = 1,
		.generation = ret_event->generation,
		.maker = (uint32_t)machine->slot,
		.maker_start_time = state_file_own_slot(machine)->start_time};
	return true;
}

bool shared_event_is_there(struct machine *machine, const struct shared_event *event)
{
	MACHINE_SCOPE(machine);

	reap_dead(machine);
	return find(machine, event);
}

void shared_event_end(struct machine *machine, const struct shared_event *event)
{
	struct layout_shared_event *at;
	MACHINE_SCOPE(machine);

	at = find(machine, event);
	if (at && at->maker == (uint32_t)machine->slot)
		at->is_used = 0;
}

void shared_event_record(
	struct machine *machine, const struct shared_event *event, int device, uint64_t clock_ns)
{
	struct layout_shared_event *at;
	MACHINE_SCOPE(machine);

	at = find(machine, event);
	if (!at || machine->slot < 0)
		return;
	at->slot = (uint32_t)machine->slot;
	at->start_time = state_file_own_slot(machine)->start_time;
	at->device = (uint32_t)device;
	at->clock_ns = clock_ns;
}

bool shared_event_read(
	struct machine *machine, const struct shared_event *event, struct schedule_point *ret_point)
{
	const struct layout_shared_event *at;
	MACHINE_SCOPE(machine);

	at = find(machine, event);
	if (!at || !at->clock_ns)
		return false;
	*ret_point =
		(struct schedule_point){at->start_time, at->clock_ns, at->slot, (int)at->device};
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cards that fall off the bus and come back, and a driver that is unloaded and loaded again. */
#include "sim/machine/presence.h"

#include <errno.h>

#include "sim/machine/event.h"
#include "sim/machine/state_file.h"

#define XID_OFF_THE_BUS 79

/* Written under the lock of the file, and read without; relaxed, all: who reads comes before or after. */
static uint32_t get(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint32_t bit(int device)
{
	return UINT32_C(1) << device;
}

/* Under the lock. */
static void count_loss(struct machine *machine, int device)
{
	struct layout_presence *p = &machine->layout->presence;

	set(&p->losses[device], get(&p->losses[device]) + 1);
	set(&p->all_losses, get(&p->all_losses) + 1);
}

/* Whether the card was there. */
static bool mark_lost(struct machine *machine, int device)
{
	struct layout_presence *p = &machine->layout->presence;
	MACHINE_SCOPE(machine);

	if (get(&p->lost) & bit(device))
		return false;
	set(&p->lost, get(&p->lost) | bit(device));
	count_loss(machine, device);
	return true;
}

int presence_lose(struct machine *machine, int device)
{
	const struct event_report report = {.type = EVENT_XID, .data = XID_OFF_THE_BUS};

	if (device < 0 || device >= machine_board(machine)->device_count)
		return -EINVAL;
	return mark_lost(machine, device) ? event_raise(machine, device, &report) : 0;
}

int presence_return(struct machine *machine, int device)
{
	struct layout_presence *p = &machine->layout->presence;

	if (device < 0 || device >= machine_board(machine)->device_count)
		return -EINVAL;
	MACHINE_SCOPE(machine);
	set(&p->lost, get(&p->lost) & ~bit(device));
	return 0;
}

bool presence_is_lost(const struct machine *machine, int device)
{
	return get(&machine->layout->presence.lost) & bit(device);
}

void presence_stop(struct machine *machine)
{
	struct layout_presence *p = &machine->layout->presence;
	MACHINE_SCOPE(machine);

	if (get(&p->is_stopped))
		return;
	set(&p->is_stopped, 1);
	for (int i = 0; i < machine_board(machine)->device_count; i++)
		count_loss(machine, i);
}

/* Under the lock. */
static void start(struct layout_presence *p)
{
	if (get(&p->is_stopped))
		set(&p->starts, get(&p->starts) + 1);
	set(&p->is_stopped, 0);
}

void presence_start(struct machine *machine)
{
	MACHINE_SCOPE(machine);
	start(&machine->layout->presence);
}

bool presence_is_stopped(const struct machine *machine)
{
	return get(&machine->layout->presence.is_stopped);
}

uint32_t presence_starts(const struct machine *machine)
{
	return get(&machine->layout->presence.starts);
}

uint32_t presence_losses(const struct machine *machine, int device)
{
	return get(&machine->layout->presence.losses[device]);
}

uint32_t presence_all_losses(const struct machine *machine)
{
	return get(&machine->layout->presence.all_losses);
}

void presence_clear(struct machine *machine)
{
	MACHINE_SCOPE(machine);
	set(&machine->layout->presence.lost, 0);
	start(&machine->layout->presence);
}

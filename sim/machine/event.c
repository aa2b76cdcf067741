/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a card and NVML reports. */
#include "sim/machine/event.h"

#include <errno.h>

#include "sim/machine/state_file.h"

/* The driver reports an error of memory that could not be corrected by both ways [d]. */
static const struct event_report double_bit_error = {EVENT_XID, EVENT_XID_DOUBLE_BIT};

static void append(struct layout_event_log *log, const struct event_report *report)
{
	log->report[log->count % EVENT_KEPT_MAX] = *report;
	layout_fence();
	log->count++;
}

int event_raise(struct machine *machine, int device, const struct event_report *report)
{
	struct layout_event_log *log;

	if (device < 0 || device >= machine_board(machine)->device_count)
		return -EINVAL;
	log = &machine->layout->events[device];
	MACHINE_SCOPE(machine);
	if (report->type & (EVENT_ECC_CORRECTED | EVENT_ECC_UNCORRECTED))
		log->ecc_errors[report->type == EVENT_ECC_CORRECTED]++;
	append(log, report);
	if (report->type & EVENT_ECC_UNCORRECTED)
		append(log, &double_bit_error);
	return 0;
}

uint64_t event_count(struct machine *machine, int device)
{
	MACHINE_SCOPE(machine);
	return machine->layout->events[device].count;
}

bool event_read(struct machine *machine, int device, uint64_t types, uint64_t *cursor,
	struct event_report *ret_report)
{
	const struct layout_event_log *log = &machine->layout->events[device];
	MACHINE_SCOPE(machine);

	if (log->count > EVENT_KEPT_MAX && *cursor < log->count - EVENT_KEPT_MAX)
		*cursor = log->count - EVENT_KEPT_MAX;
	while (*cursor < log->count) {
		*ret_report = log->report[(*cursor)++ % EVENT_KEPT_MAX];
		if (ret_report->type & types)
			return true;
	}
	return false;
}

uint64_t event_ecc_errors(struct machine *machine, int device, bool is_corrected)
{
	MACHINE_SCOPE(machine);
	return machine->layout->events[device].ecc_errors[is_corrected];
}

void event_clear(struct machine *machine)
{
	MACHINE_SCOPE(machine);
	for (int i = 0; i < MACHINE_DEVICES_MAX; i++)
		for (int j = 0; j < 2; j++)
			machine->layout->events[i].ecc_errors[j] = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Events that processes share: each is when the clock of whoever recorded it last shows a time. */
#pragma once

#include "sim/machine/schedule.h"

struct shared_event {
	uint32_t index, generation;
};

/* A new one of the calling process. False: there is no place. */
bool shared_event_make(struct machine *machine, struct shared_event *ret_event);

/* Whether it is there still. */
bool shared_event_is_there(struct machine *machine, const struct shared_event *event);

/* Its maker destroys it; what others have of it means nothing any more. */
void shared_event_end(struct machine *machine, const struct shared_event *event);

/* It happens when the calling process's clock of the device shows that. */
void shared_event_record(
	struct machine *machine, const struct shared_event *event, int device, uint64_t clock_ns);

/* When it happens; false: it was never recorded, or is gone. */
bool shared_event_read(struct machine *machine, const struct shared_event *event,
	struct schedule_point *ret_point);

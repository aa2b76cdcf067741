/* SPDX-License-Identifier: Apache-2.0 */
/* What a meter's streams have under way: it is collected, ended, and charged. All of it under the meter's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/compute/meters.h"

/* Ends the open batch, by an event where is_exact. */
void work_end_batch(struct stream_state *s, uint64_t now_ns, bool is_exact);

/* Lets events tell when what is in open batches ends. */
void work_end_batches(struct meter *meter, uint64_t now_ns);

/* What is done is charged. */
void work_collect(struct meter *meter, uint64_t now_ns);

/* When all that this process has given to the device should be done; 0: nothing is known of. */
uint64_t work_end_ns(const struct meter *meter);

/* Says in the region until when this process should keep the device busy; 0: it does not. */
void work_say_busy_until(struct meter *meter, uint64_t until_ns);

/* Whether it is known that nothing of this process is on the device. */
bool work_is_idle(const struct meter *meter, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/* The work that a meter's streams have under way: it is collected, ended, and charged. All of it under the meter's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter;
struct stream_state;

/* Of a meter; written by work.c alone. */
struct work {
	uint32_t
		overlap_permille; /* of what streams took, what nobody else of the slice took as well */
	uint64_t charged_ns;	  /* by this process, since it began */
};

/* clang-format off */
#define WORK_NULL {.overlap_permille = 1000}
/* clang-format on */

/* The stream was idle, or is another from now on: what its open batch took is charged by its estimate. */
void work_break(struct stream_state *s, uint64_t now_ns);

/* Work comes: if it comes after a pause, what was given before that ends, and is charged by its estimate. */
void work_note_pause(struct stream_state *s, uint64_t now_ns);

/* Lets events tell when what is in open batches ends. */
void work_end_batches(struct meter *meter);

/* Collects batches that are done, and charges them. */
void work_collect(struct meter *meter, uint64_t now_ns);

/* When all that this process has given to the device should be done; 0: nothing is known of. */
uint64_t work_end_ns(const struct meter *meter);

/* When the oldest work of the stream was given that has no estimate, and is under way; 0: there is none. */
uint64_t work_unknown_since_ns(const struct stream_state *s);

/* Says in the region until when this process should keep the device busy; 0: it does not. */
void work_say_busy_until(struct meter *meter, uint64_t until_ns);

/* Whether it is known that nothing of this process is on the device. */
bool work_is_idle(const struct meter *meter, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice's queue: when all that its processes have given to the device should be done, while other slices are about.
 *
 * Each process lets in a little ahead of what the device does. As many times as much would be under way as the slice has
 * processes, streams and threads, and others wait for all of it. So what one lets in begins, for all of them, after what the
 * others have let in. It is the slice's own affair: it has less or more at once, and is charged the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter;

/* The queue as it was seen. */
struct queue {
	uint64_t word;	 /* as it stands in the books */
	uint64_t end_ns; /* now, where nothing is queued */
};

struct queue queue_look(const struct meter *meter, uint64_t now_ns);

/* Adds so much at its end. False where it is not as it was seen any more: the caller looks again. */
bool queue_enter(const struct meter *meter, const struct queue *seen, uint64_t ns);

/* What was added before takes so much more, or less. */
void queue_correct(const struct meter *meter, int64_t ns, uint64_t now_ns);

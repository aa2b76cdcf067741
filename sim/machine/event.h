/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a card and NVML reports: XIDs and errors of its memory, put in from outside. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/machine.h"

/* The types, which are NVML's bits. */
#define EVENT_ECC_CORRECTED   UINT64_C(1)
#define EVENT_ECC_UNCORRECTED UINT64_C(2)
#define EVENT_XID	      UINT64_C(8)

#define EVENT_XID_DOUBLE_BIT  48 /* comes with each EVENT_ECC_UNCORRECTED */

struct event_report {
	uint64_t type;
	uint64_t data; /* the number of an XID */
};

/* The last so many of a card can be read; earlier ones are lost to who did not. */
#define EVENT_KEPT_MAX 32

/* A card reports that; an error of memory is counted, too, and one that was not corrected brings its XID. -EINVAL: there is no such card. */
int event_raise(struct machine *machine, int device, const struct event_report *report);

/* How many there were of a card: where a reader begins. */
uint64_t event_count(struct machine *machine, int device);

/* The first of these types at or after *cursor, which then stands behind it. False: none. */
bool event_read(struct machine *machine, int device, uint64_t types, uint64_t *cursor,
	struct event_report *ret_report);

/* Errors of memory so far, corrected by the card or not. */
uint64_t event_ecc_errors(struct machine *machine, int device, bool is_corrected);

/* Forgets the errors of memory of all cards, as a reset does. */
void event_clear(struct machine *machine);

/* SPDX-License-Identifier: Apache-2.0 */
/* Books for tests of holdings: how much came back, and how. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/memory/holding.h"
#include "tests/unit/cmocka_ready.h"

#define UNIT REGION_UNIT_BYTES

extern uint64_t given_back, left_to_figure, in_doubt; /* bytes */
extern uint64_t unnamed;			      /* charge_unnamed_since() */
extern unsigned let_go;				      /* of shared allocations */
extern unsigned objects_ended;
extern bool has_figure;

/* Before each test. */
int holding_books_begin(void **unused);

/* A holding of so many units, as it was charged. */
struct holding holding_books_units(uint32_t count, uint64_t life);

/* SPDX-License-Identifier: Apache-2.0 */
/* A recording, or a case in its form (vectors/README.md), as the books and rules that it describes. Ends the process without memory. */
#pragma once

#include <jansson.h>

#include "base/bits.h"
#include "scheduler/books.h"
#include "scheduler/demand.h"

/* "" where it is not there. */
const char *case_text(const json_t *object, const char *key);
bool case_has_flag(const json_t *config, const char *flag);

/* The texts stay the case's. */
struct demand_rules case_rules(const json_t *config);

/* Gives the pods on the nodes UIDs. */
void case_add_nodes(struct books *books, const struct demand_rules *rules, const json_t *nodes);
void case_add_quotas(struct books *books, const struct demand_rules *rules, const json_t *vector);

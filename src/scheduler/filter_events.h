/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told of a decision. */
#pragma once

#include "kube/event.h"
#include "scheduler/filter.h"
#include "scheduler/measure.h"

/* "find fit node(n1), 0 nodes not fit, 1 nodes fit(n1:0.00)"; the caller frees it. NULL: no memory. */
char *filter_events_found(const struct filter_request *request, const struct filter_answer *answer);

/* Events of a pod that fits nowhere: one for each reason with the nodes that have it, and one that sums up. */
void filter_events_none(struct event_log *log, const struct demand *demand,
	const struct filter_request *request, const struct filter_answer *answer);

/* Counts the nodes that did not do, by reason. */
void filter_events_count(struct measure *measure, const struct filter_answer *answer);

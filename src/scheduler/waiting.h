/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods that were last told that no node does, and why: for people.
 *
 * There are at most WAITING_MOST of them; of more, those are kept that were told last. A pod waits until it is promised devices, is
 * bound, or is gone; or until it has not asked for longer than kube-scheduler lets a pod rest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/filter.h"

#define WAITING_MOST	    64
#define WAITING_REASONS	    4
#define WAITING_WORDS_BYTES 160
#define WAITING_REST_S	    660 /* kube-scheduler: 5 minutes, and each try takes some */

struct waiting_reason {
	struct filter_reason reason;
	unsigned nodes;
};

struct waiting_pod {
	char uid[64], namespace[64], name[254];
	int64_t since_s, told_s; /* Unix time; told 0: there is none */
	unsigned count;		 /* how often it was told */
	int64_t devices, memory_mib,
		cores; /* of all its containers; the most of one device; likewise */
	struct waiting_reason reasons[WAITING_REASONS];
	unsigned reason_count, other_nodes; /* with other reasons */
	bool is_waiting;
};

struct waiting {
	struct waiting_pod pods[WAITING_MOST];
};

/* The pod fits on none of the nodes. */
void waiting_note(struct waiting *waiting, const struct filter_request *request,
	const struct filter_answer *answer, int64_t now_s);

/* It has what it asked for, or is gone. */
void waiting_settle(struct waiting *waiting, const char *uid);

/* Whether it still waits, as far as is known. */
bool waiting_is_so(const struct waiting_pod *pod, int64_t now_s);

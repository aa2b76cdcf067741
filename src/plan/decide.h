/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the scheduler would put a pod: its own webhook, filter and books are asked. The answer is an object for programs, which
 * docs/scheduler.md describes, and of which the text for people is made.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "plan/world.h"

enum decide_outcome {
	DECIDE_PLACED,
	DECIDE_PENDING, /* it fits nowhere */
	DECIDE_REFUSED, /* the webhook denies it, or the scheduler does not understand it */
	DECIDE_OTHERS,	/* it asks for no device, or names another scheduler */
};

struct decide_request {
	bool with_devices; /* what each device of each node was to each container */
	bool enters;	   /* a pod that is placed takes its devices */
};

/* -ENOMEM. */
int decide(struct world *world, struct world_pod *pod, const struct decide_request *request,
	enum decide_outcome *ret_outcome, json_t **ret_answer) MUST_CHECK;

/* The devices that annotations name, with their places on the node; NULL: there are none, or they are not understood. */
json_t *decide_devices(struct world *world, const json_t *pod, const char *node,
	const char *devices, const char *instances);

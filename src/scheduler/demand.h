/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for, read from its object. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/fit.h"

/* Of the configuration, what bears on a request. */
struct demand_rules {
	const char *count, *memory, *percentage, *cores; /* the resources' names */
	int64_t default_memory_mib;			 /* 0: the whole device */
	int64_t default_cores;
	int64_t memory_factor;			 /* 1 where it is 0 */
	const char *node_policy, *device_policy; /* where the pod names none */
};

/* Its texts are the pod's. */
struct demand {
	const char *namespace, *name, *uid;
	struct fit_pod
		pod; /* but for the room, which is the namespace's; its requests are the demand's */
	bool asks;   /* for a device at all */
	bool is_spread; /* over nodes; else packed */
};

/*
 * Reads it. The pod must live as long. -EINVAL with err set, for an annotation that is not understood; -ENOMEM.
 */
int demand_read(const struct demand_rules *rules, const json_t *pod, struct demand *ret_demand,
	struct err *err) MUST_CHECK;

/* Only who it is, and its containers. -ENOMEM. */
int demand_read_containers(
	const struct demand_rules *rules, const json_t *pod, struct demand *ret_demand) MUST_CHECK;

/* Accepts what is all zero. */
void demand_deinit(struct demand *demand);

/* Whether a container names the resource, as a limit or a request; "" and NULL are no resource. */
bool demand_is_asked(const json_t *container, const char *name);

/* How much of it: the limit, or the request where there is none. False: it is not there, or no whole amount. */
bool demand_amount(const json_t *container, const char *name, int64_t *ret_value) MUST_CHECK;

/* The pod's priority; 0 where it has none. */
int32_t demand_priority(const json_t *pod);

/* The value of an annotation; NULL: it has none. */
const char *demand_annotation(const json_t *object, const char *key);

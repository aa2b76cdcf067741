/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod takes of a node's devices, as its annotations say, and how they come to say it. */
#pragma once

#include <jansson.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/fit.h"
#include "scheduler/books.h"
#include "scheduler/demand.h"

#define RESERVATION_NODE      "hami.io/vgpu-node"
#define RESERVATION_TIME      "hami.io/vgpu-time" /* Unix seconds */
#define RESERVATION_INSTANCES "hami.io/vgpu-mig-allocations"

/* Of a bound pod; the device plugin changes it when it has served the pod, or failed to. */
#define RESERVATION_PHASE      "hami.io/bind-phase"
#define RESERVATION_ALLOCATING "allocating"

struct reservation;

/*
 * Reads the annotations of a pod that has hami.io/vgpu-node. What init containers took counts until all of them have
 * ended well; instances are there until the pod is over. -ENOENT: it takes nothing, because it has none, or the pod is over. -EINVAL with err set; -ENOMEM.
 */
int reservation_read(const struct demand_rules *rules, const json_t *pod,
	struct reservation **ret_reservation, struct err *err) MUST_CHECK;

/* The same of a bound pod, which takes nothing where its annotations, that came with its binding, name another node. */
int reservation_read_bound(const struct demand_rules *rules, const json_t *pod,
	struct reservation **ret_reservation, struct err *err) MUST_CHECK;

/* When a promise was made, in seconds since 1970, as annotations say: no more than 2^40. 0: they do not. */
int64_t reservation_time_s(const json_t *annotations);

/* For books_set_pod(); good until it is freed. */
const struct books_pod *reservation_pod(const struct reservation *reservation);

/* Accepts NULL. */
void reservation_free(struct reservation *reservation);

/*
 * The annotations that promise a pod these devices; the texts are the caller's to free. A container without devices has
 * an empty slot. *ret_instances is NULL where no device is in MIG mode. -ENOMEM.
 */
int reservation_write(const struct fit_node *node, const struct fit_pod *pod,
	const struct fit_result *result, char **ret_devices, char **ret_instances) MUST_CHECK;

/* Puts a promise into a pod's object, as it will be on the pod. instances: NULL without MIG. -ENOMEM. */
int reservation_annotate(json_t *pod, const char *node, const char *devices, const char *instances,
	int64_t now_s) MUST_CHECK;

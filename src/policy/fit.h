/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a pod fits on a node, on which devices, and if not, why.
 *
 * Containers come in their order of start: init containers and sidecars first. An init container that ends does not add
 * to the others: each has what is free beside the sidecars before it. A sidecar and what comes after it run together. What the
 * pod takes of a device is therefore the most of any moment: of each init container with the sidecars before it, and of
 * all sidecars and other containers together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "policy/mig.h"
#include "policy/rank.h"

#define FIT_DEVICES 64	/* of one node */
#define FIT_CHOICES 512 /* of one pod */

struct fit_device {
	const char *uuid;
	const char *model; /* "NVIDIA A30" */
	const char *mode;  /* "hami-core", "mig", "mps" */
	unsigned numa;
	bool is_healthy, is_cordoned, is_mig;
	struct rank_amount all;	 /* cores: 100 for a whole device */
	struct rank_amount used; /* may be more than all */
	const struct mig_profile *profiles;
	size_t profile_count;
	uint32_t mig_taken; /* bits of memory slices */
};

struct fit_node {
	const struct fit_device *devices;
	size_t device_count; /* at most FIT_DEVICES */
	/* How well devices are joined, as topology_choose_scored() has it. NULL: it is not known. */
	const uint32_t *joins;
	double fullness; /* for who ranks nodes again and again: what fit_node_score() says */
};

enum fit_kind { FIT_INIT, FIT_SIDECAR, FIT_APP };

/* What one container asks for. */
struct fit_request {
	enum fit_kind kind;
	int64_t devices;    /* 0: nothing */
	int64_t memory_mib; /* of each device; 0: by percentage */
	int64_t percentage; /* of each device's memory, or its largest MIG profile's; below 0: none */
	int64_t cores;	    /* percent of each device; above 100 counts as 100 */
};

/* What the pod's namespace may still take; INT64_MAX: there is no limit. */
struct fit_room {
	int64_t memory_mib, cores;
};

struct fit_pod {
	const struct fit_request *requests;
	size_t request_count;
	struct rank_policy policy;
	struct rank_weights weights;
	bool is_numa_bound;
	const char *types, *not_types; /* lists of parts of models; NULL or blank: all, none */
	const char *uuids, *not_uuids;
	const char *modes; /* a text that must have the device's mode in it; NULL: any */
	struct fit_room room;
};

/* One device of one container. */
struct fit_choice {
	uint32_t request, device; /* their indices */
	int64_t memory_mib, cores;
	struct mig_choice mig; /* its profile is NULL without MIG */
};

enum fit_reason {
	FIT_ALLOCATED_TOO_FEW,
	FIT_COMPUTE_EXHAUSTED,
	FIT_CORDONED,
	FIT_LACKS_CORES,
	FIT_LACKS_MEMORY,
	FIT_MIG_INFEASIBLE,
	FIT_NOT_HEALTHY,
	FIT_SLICES_EXHAUSTED,
	FIT_TYPE_DIFFERS,
	FIT_UUID_DIFFERS,
	FIT_EXCLUSIVE,
	FIT_LACKS_DEVICES,
	FIT_NUMA_DIFFERS,
	FIT_QUOTA,
	FIT_REASONS
};

/* The caller may reuse it from node to node. */
struct fit_result {
	struct fit_choice
		choices[FIT_CHOICES]; /* by container; of each in the order of preference */
	size_t choice_count;
	/* Without success: of the container that did not fit, how many devices are out for each reason. */
	uint32_t reasons[FIT_REASONS];
};

/* The word for a reason: "CardInsufficientMemory". */
const char *fit_reason_word(enum fit_reason reason);

/* Whether all containers fit. */
bool fit(const struct fit_node *node, const struct fit_pod *pod, struct fit_result *ret_result);

/*
 * Whether the pod fits for sure, at a glance: one container that asks, whose devices need not be of one NUMA node, in a namespace
 * without a limit. False: fit() has to say.
 */
bool fit_surely(
	const struct fit_node *node, const struct fit_pod *pod, struct fit_result *ret_scratch);

/* One device, before the first of a container's is taken. */
struct fit_sight {
	bool is_seen;		   /* false: an earlier container did not fit */
	enum fit_reason reason;	   /* FIT_REASONS: it would do */
	int64_t memory_mib, cores; /* what the container would take of it */
	double score;		   /* how full it would be then, as spread and binpack compare it */
};

/* fit(), which says of each device what it was to each container: sight [request * node->device_count + device]. */
bool fit_explain(const struct fit_node *node, const struct fit_pod *pod,
	struct fit_result *ret_result, struct fit_sight *ret_sights);

/* How full the node is, without the pod; 0 where slots, cores or memory are none. */
double fit_node_score(const struct fit_node *node);

/*
 * What choices, in the order of their requests, take of each device at the most of any moment. ret_amounts has a place for
 * each device of the node.
 */
void fit_sum(const struct fit_pod *pod, const struct fit_choice *choices, size_t choice_count,
	size_t device_count, struct rank_amount *ret_amounts);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cluster has, and what its pods take of it: nodes with their devices, pods with what they were assigned,
 * namespaces with their quotas.
 *
 * It is told what changed, object by object, and answers at once: a node is summed up anew when it is asked for after one of
 * its pods has changed, and costs what its own pods cost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/fit.h"
#include "scheduler/demand.h"
#include "scheduler/registry.h"

struct books;

int books_new(struct books **ret_books) MUST_CHECK;
void books_free(struct books *books);

/*
 * The node is there with these annotations, or has changed. Texts that are not understood leave its devices as they were,
 * with -EINVAL and err set. Without devices it is known and has none. -ENOMEM.
 */
int books_set_node(struct books *books, const char *name, const struct registry_texts *texts,
	struct err *err) MUST_CHECK;
void books_drop_node(struct books *books, const char *name);

/* A node with its devices and what is used of them; NULL: none is registered. It is good until the books change. */
const struct fit_node *books_node(struct books *books, const char *name);

/* What one device of a pod is charged with. */
struct books_charge {
	const char *uuid;
	struct rank_amount amount;
};

/* An instance that a pod was promised. */
struct books_instance {
	const char *uuid; /* of the device */
	struct mig_place place;
	const char *profile;	    /* NULL: it is not said */
	const char *given;	    /* the instance's own UUID; NULL: it is not made yet */
	unsigned instance, compute; /* the driver's numbers, once it is */
};

/* What decides which pods make room for another. */
struct books_standing {
	int64_t since_s; /* Unix time; of pods of one priority the later goes first */
	int32_t priority;
	bool is_bound, is_ending; /* to a node; it has been told to end */
};

struct books_pod {
	const char *uid, *namespace, *node;
	const char *name;		    /* for people; NULL: "" */
	const struct books_charge *charges; /* one for each device */
	size_t charge_count;
	const struct books_instance *instances;
	size_t instance_count;
	bool has_doubtful_instances; /* what says which is not understood */
	struct books_standing standing;
	struct fit_room
		wished; /* beyond its charges; its namespace's quota counts it, no device does */
};

/* The pod takes so much from now on, instead of what it took before. -ENOMEM: all is as it was. */
int books_set_pod(struct books *books, const struct books_pod *pod) MUST_CHECK;
void books_drop_pod(struct books *books, const char *uid);
bool books_has_pod(const struct books *books, const char *uid);

/* Until it is taken back, nodes and quotas are as though the pod were gone. One that is not there stays so. */
void books_set_aside(struct books *books, const char *uid, bool is_aside);

/* The pods of a node. */
typedef void books_occupant_fn(
	void *context, const char *uid, const struct books_standing *standing);
void books_each_occupant(
	const struct books *books, const char *node, books_occupant_fn *take, void *context);

/* books_sweep_pods() drops those that were neither set nor seen since books_mark_pods(). */
void books_mark_pods(struct books *books);
void books_see_pod(struct books *books, const char *uid);
void books_sweep_pods(struct books *books);

/* A quota of a namespace; INT64_MAX: it does not limit that. Of several the strictest holds. -ENOMEM. */
int books_set_quota(struct books *books, const char *namespace, const char *name,
	const struct fit_room *limit) MUST_CHECK;
void books_drop_quota(struct books *books, const char *namespace, const char *name);

/* books_sweep_quotas() drops those that were not set since books_mark_quotas(). */
void books_mark_quotas(struct books *books);
void books_sweep_quotas(struct books *books);

/* Each device that is registered, as books_node() has it. */
typedef void books_device_fn(
	void *context, const char *node, size_t index, const struct fit_device *device);
void books_each_device(struct books *books, books_device_fn *take, void *context);

/* Each device of each pod. */
typedef void books_charge_fn(void *context, const struct books_pod *pod, const char *uuid,
	const struct rank_amount *amount);
void books_each_charge(const struct books *books, books_charge_fn *take, void *context);

/* Each instance of each pod that is on a device which is registered: index and UUID are the device's. */
typedef void books_instance_fn(
	void *context, const char *node, size_t index, const struct books_instance *instance);
void books_each_instance(struct books *books, books_instance_fn *take, void *context);

/* Each namespace that has quotas, with the strictest of them. */
typedef void books_quota_fn(void *context, const char *namespace, const struct fit_room *limit,
	const struct fit_room *used);
void books_each_quota(const struct books *books, books_quota_fn *take, void *context);

/* What the namespace may still take; negative where it has more than it may. */
struct fit_room books_room(const struct books *books, const char *namespace);

/* The same for another wish of that pod: what it wished for before does not count. */
struct fit_room books_room_for_wish(
	const struct books *books, const char *namespace, const char *uid);

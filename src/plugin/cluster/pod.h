/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod as far as it concerns the plugin: who it is, which of its containers want slices, and how far its reservation
 * has been handed out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "kube/assignment.h"

#define POD_TO_ALLOCATE "hami.io/vgpu-devices-to-allocate"
#define POD_BIND_PHASE	"hami.io/bind-phase"

/* A container that wants slices. */
struct pod_container {
	char *name;
	unsigned slices;
	unsigned index;	  /* among all containers of the pod, init containers first */
	bool has_slices;  /* by the kubelet's record, which does not name init containers */
	int64_t priority; /* below 0: it asks for none */
	/* as the priority; of each slice */
	int64_t memory_mib, memory_percent, cores_percent;
	char *disable_control; /* CUDA_DISABLE_CONTROL of its own environment; NULL: not there */
	char *covering; /* what it mounts of its own over what its limits are made of; NULL: nothing */
};

enum pod_phase { POD_PHASE_NONE, POD_PHASE_ALLOCATING, POD_PHASE_SUCCESS, POD_PHASE_FAILED };

struct pod {
	struct pod *next, *previous; /* in the order in which the kubelet admits */
	char *space, *name, *uid;    /* of its namespace: its name */
	char *node;		     /* "hami.io/vgpu-node"; NULL: not reserved */
	char *to_allocate;	     /* NULL: not there */
	char *allocated;	     /* the reservation as it was written; NULL: not there */
	char *wish; /* how large its slices are to be (kube/wish.h); NULL: as they are */
	uint64_t wish_rests_ns; /* until then that wish is not looked at again */
	uint64_t shrunk_ns;	/* when a share of it became less; 0: not since the plugin began */
	char *instances;	/* reserved ones (kube/instances.h); NULL: not there */
	enum pod_phase phase;
	bool has_bind_time;
	bool is_over;	  /* has succeeded or failed */
	bool is_admitted; /* the kubelet has decided about it */
	bool is_leaving;  /* is deleted, and may still run */
	bool is_unlisted; /* by the kubelet's record: it does not know the pod */
	bool is_seen;	  /* in the list that is under way */
	uint64_t version; /* grows with each change; 0: it is not said */
	uint64_t batch;	  /* of those that became known at once */
	char created[24]; /* RFC 3339, UTC */
	unsigned container_count;
	struct pod_container *containers;
	unsigned need_count; /* of all containers */
	struct assignment_need *needs;
};

/* What the resources are called, and HOOK_PATH. */
struct pod_resources {
	const char *slices, *priority, *memory, *memory_percentage, *cores, *hook;
};

/* *ret_pod is NULL where it wants no slices. -ENOMEM, -EINVAL. */
int pod_parse(const json_t *object, const struct pod_resources *resources,
	struct pod **ret_pod) MUST_CHECK;

/* Accepts NULL. */
void pod_free(struct pod *pod);

/* Where the API server has a pod of that name; the caller frees it. NULL: there is no memory. */
char *pod_path(const char *space, const char *name);

/* Takes over what can change: annotations, phase and the like. The other is emptied and freed. */
void pod_update(struct pod *pod, struct pod *fresh);

/* The next slot's text, "" where there is none, and the annotation without it. The caller frees it. -ENOMEM. */
int pod_take_slot(const struct pod *pod, char **ret_slot, char **ret_rest) MUST_CHECK;

/* Slots of the reservation that have not been handed out; 0 where there is none. */
unsigned pod_slots_left(const struct pod *pod);

/* Whether the next slot is one that was reserved at first: nothing else is handed out. */
bool pod_has_written_slot(const struct pod *pod);

/* The container that the next slot is for; NULL where the reservation does not fit the pod. */
const struct pod_container *pod_next_container(const struct pod *pod);

/* Is reserved here, and bound. What tenants can write says no more than this: it is never enough alone. */
bool pod_is_reserved(const struct pod *pod, const char *node_name);

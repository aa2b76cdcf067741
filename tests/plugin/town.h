/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster in memory: an API server that loses calls, a scheduler that locks and binds, and a kubelet that admits. The
 * plugin's parts run before it in one process, and may end between any two steps.
 *
 * It stands where the client of a real server does: it has kube_get() and the others itself.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "plugin/agent.h"

#define TOWN_NODE     "node1"
#define TOWN_RESOURCE "nvidia.com/gpu"

enum town_fault { TOWN_NO_FAULT, TOWN_CALL_LOST, TOWN_ANSWER_LOST, TOWN_REPEATED };

struct town {
	struct loop *loop;
	struct agent *agent;
	struct config config; /* the plugin's */
	const struct giver *giver;
	json_t *node, *pods; /* pods by their names, all of one namespace */
	/* the kubelet\'s: whether the first container of a pod of that name has slices; NULL: it has none */
	json_t *record;
	bool is_watch_late; /* it says nothing of what happens */
	bool disk_fails;    /* of what is given next, after it was made */
	unsigned calls, patches, faults;
	unsigned fault_in; /* the so manieth call from now has this fault; 0: none */
	enum town_fault fault;
	unsigned fault_permille; /* of calls: lost before or after they are carried out */
	uint32_t random;
	uint64_t version;
};
extern struct town town;

/* A case in a town of its own. */
#define town_test(f) cmocka_unit_test_setup_teardown(f, town_begin, town_end)
int town_begin(void **state);
int town_end(void **state);

uint32_t town_random(uint32_t below);

void town_start_plugin(void);
void town_kill_plugin(void);

/*
 * A pod is bound, by the scheduler with its lock, whose word the slots are; or past it, where they are NULL. Its containers
 * want so many slices each.
 */
void town_bind(const char *name, const char *slots, const unsigned *slices, unsigned count);
void town_delete(const char *name);

/* The kubelet's word about a pod. */
void town_set_status(const char *name, const char *phase);

const char *town_annotation(const char *name, const char *key);
const char *town_uid(const char *name); /* as long as the pod is there */
void town_expect(const char *name, const char *key, const char *value);
const char *town_lock(void);
void town_set_lock(const char *text);

/* Lets the loop run for so long of its own time. */
void town_run(unsigned ms);

/*
 * One Allocate: 0, and what was given, "POD/CONTAINER SLOT"; or the status that it was refused with, and why. The plugin
 * may end meanwhile and begin again, where there are faults.
 */
int town_allocate(unsigned slices, char *ret_slot, size_t size);

/* Of an object. */
json_t *town_annotations(json_t *object);

/* The plugin's watch will say so of a pod; while it is late, not before it is not any more. */
void town_tell(json_t *object, bool is_present);
void town_delay_watch(bool is_late);

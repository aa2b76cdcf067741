/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster that is planned for: nodes, pods and quotas from files or an API server, and what is imagined beside them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "plan/reader.h"
#include "scheduler/books.h"
#include "scheduler/settings.h"

#define WORLD_PODS_MOST 200000
#define WORLD_WORDS	300

struct world_node {
	json_t *object;
	const char *name; /* the object's */
	bool is_drained, is_added;
};

enum world_state {
	WORLD_RUNS,	/* it is bound, and counted */
	WORLD_PROMISED, /* the scheduler keeps devices for it, which are counted */
	WORLD_WAITS,	/* it is to be decided */
	WORLD_GOES,	/* it ends with its node, which is drained */
};

struct world_pod {
	json_t *object;
	enum world_state state;
	bool is_new;   /* not in a cluster: it passes the webhook first */
	bool is_moved; /* from a node that is drained */
	size_t order;
};

struct world {
	const struct settings *settings;
	const char *namespace; /* of objects that name none */
	struct books *books;
	json_t *classes; /* of priorities, by their names */
	struct world_node *nodes;
	size_t node_count;
	struct world_pod *pods;
	size_t pod_count;
	int64_t now_s;
	/* Told of what is odd, and does not stop the plan. */
	void (*warn)(const char *words);
};

/* The settings and the namespace must live as long. -ENOMEM. */
int world_init(struct world *world, const struct settings *settings, const char *namespace,
	int64_t now_s, void (*warn)(const char *words)) MUST_CHECK;

/* Accepts what is all zero. */
void world_deinit(struct world *world);

/*
 * Adds objects: nodes, pods, quotas, and of workloads the pods that they would make. are_live: they come from an API server, and what
 * is wrong with one is a warning. -EINVAL with err set, which names file, line, key and what would be right; -ENOMEM.
 */
int world_add(struct world *world, const struct reader_list *list, bool are_live,
	struct err *err) MUST_CHECK;

/* Adds a node with no pods: "like=NODE", or "name=...,type=...,gpus=8,memory=80Gi,split=10". -EINVAL with err set; -ENOMEM. */
int world_add_node(struct world *world, const char *text, struct err *err) MUST_CHECK;

/* Nothing more is put on the node, and its pods with devices wait again. -EINVAL with err set: there is none of that name. */
int world_drain(struct world *world, const char *name, struct err *err) MUST_CHECK;

struct world_node *world_find_node(const struct world *world, const char *name);

/* Enters a node's object into the books. The object is taken in any case. */
int world_enter_node(
	struct world *world, json_t *object, bool is_added, struct err *err) MUST_CHECK;

/* Pods in the order in which kube-scheduler takes them: by priority, then by age. */
void world_sort(struct world *world);

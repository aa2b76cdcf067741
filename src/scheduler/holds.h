/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that are kept for pods which are not bound yet.
 *
 * A pod's annotations say what it was promised, but do not say whether that still holds: they stay on a pod that was
 * refused later, and a change of it that was made before comes later. So for a pod that is not bound the hold is what
 * counts, and its annotations only where another scheduler, or this one before a restart, wrote them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "kube/client.h"
#include "scheduler/books.h"
#include "scheduler/nudge.h"
#include "scheduler/promise.h"

struct holds;
struct bind;

struct hold {
	char *uid, *namespace, *name;
	char *version;	     /* of the pod, as it was last seen */
	char *trouble;	     /* why it could not be written; NULL */
	json_t *annotations; /* what the pod was promised */
	bool is_own;	     /* this scheduler promised it */
	bool is_kept;  /* false: it has ended, and is remembered so that it does not come back */
	bool is_dirty; /* the pod has annotations of a promise, or may have */
	bool is_marked, is_over;	/* over: the bind forgets it at its end */
	uint64_t until_ns;		/* by a clock that nobody sets */
	uint64_t others;		/* the node's, when it was promised */
	struct promise *writing;	/* the annotations; NULL */
	struct bind *bind;		/* that is under way; NULL */
	void (*changed)(void *context); /* it is written, or has ended; NULL: nobody waits */
	void *context;
};

int holds_new(struct kube_client *client, struct books *books, const struct demand_rules *rules,
	int64_t timeout_s, struct nudge *nudge, struct holds **ret_holds) MUST_CHECK;

/* Accepts NULL. */
void holds_free(struct holds *holds);

/* The hold of a pod, ended ones as well; NULL: there is none. */
struct hold *holds_find(const struct holds *holds, const char *uid);

const char *hold_node(const struct hold *hold);

/* The pod was seen at this version. */
void hold_set_version(struct hold *hold, const char *version);

/*
 * Keeps for a pod what its annotations say, instead of what was kept for it. -EINVAL, -ENOENT: they say nothing that can be
 * kept; -ENOMEM.
 */
int holds_keep(
	struct holds *holds, const json_t *pod, bool is_own, struct hold **ret_hold) MUST_CHECK;

/*
 * Writes the annotations onto the pod: in a moment, because the binding brings them, too, and mostly comes sooner, and not
 * while it is being bound; at once where there may be others, or the server does not take labels from bindings. What
 * cannot be written ends. -ENOMEM.
 */
int holds_write(struct holds *holds, struct hold *hold) MUST_CHECK;

/* The pod is about to be bound. Whether that has to wait for the writing; what has not begun does not begin any more. */
bool holds_is_writing(struct holds *holds, struct hold *hold);

/* A bound pod: whether the server has taken the node's label from its binding is seen by it. */
void holds_see_bound(struct holds *holds, const json_t *pod);

/*
 * A pod that is not bound, as the API server has it. What its annotations say is kept where this scheduler has said nothing
 * else, and for as long as it would keep it itself. True: what another scheduler has promised counts from now on.
 */
bool holds_see(struct holds *holds, const json_t *pod);

/* Gives the devices back. clears: the pod's annotations are removed, too. */
void holds_end(struct holds *holds, struct hold *hold, bool clears);

/*
 * The pod is bound or gone: its hold is not needed. What it takes of the books is not touched. While it is being bound it
 * stays, and the bind forgets it at the end.
 */
void holds_forget(struct holds *holds, struct hold *hold);

/* The bind of it is at its end. */
void holds_unbind(struct holds *holds, struct hold *hold);

/* Ends those whose time has come, and which are not being bound. */
void holds_expire(struct holds *holds, bool clears);

/* Another scheduler leads: what is kept is what the annotations say. */
void holds_disown(struct holds *holds);

/* holds_sweep() forgets, with what they took, those that were not seen since holds_mark(). */
void holds_mark(struct holds *holds);
void holds_sweep(struct holds *holds);

/* How many are kept. */
size_t holds_count(const struct holds *holds);

/* Takes the annotations that say what it was promised off a pod that is not bound, unless it is promised something meanwhile. */
void holds_clear(struct holds *holds, const struct promise_pod *pod);

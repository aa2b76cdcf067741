/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-scheduler asks again for a pod that fitted nowhere when something has changed in the cluster. It may see the end of
 * another pod before this program does, ask, be refused, and then hear of nothing more; and it sees nothing of devices that
 * were kept for a pod and given back. So a node that got room after a refusal gets a new annotation, which is a change.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"

#define NUDGE_ANNOTATION "cantaloupe.io/room-since" /* Unix seconds */

struct nudge;

int nudge_new(struct kube_client *client, struct nudge **ret_nudge) MUST_CHECK;

/* Accepts NULL. */
void nudge_free(struct nudge *nudge);

/* A pod fitted nowhere. */
void nudge_refused(struct nudge *nudge);

/*
 * There is more room, on this node or because of it. Of what is no name of a node nothing is told. was_told: the API server tells kube-scheduler of it, too, and only
 * the order is not known.
 */
void nudge_freed(struct nudge *nudge, const char *node, bool was_told);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices of running pods are made larger or smaller, as the pods' annotation asks for it:
 *
 *	cantaloupe.io/resize: {"main": {"gpumem": 4000, "gpucores": 50}}
 *
 * MiB and percent of each device that the container has; what is not said stays. First the pod's allocation says it
 * (hami.io/vgpu-devices-allocated), from which every scheduler counts, then the share file. Both are compared with
 * the annotation at each change of a pod, so a plugin that ends in between goes on (docs/decisions/0031-resize.md).
 */
#pragma once

#include "base/bits.h"
#include "kube/event.h"
#include "plugin/cluster/cluster.h"
#include "plugin/give.h"

struct resize;

/* All of it is the caller's, for as long. events NULL: nobody is told. -ENOMEM. */
int resize_new(const struct cluster *cluster, const struct giver *giver, struct event_log *events,
	struct resize **ret_resize) MUST_CHECK;

/* Accepts NULL. Before what it was made of. */
void resize_free(struct resize *resize);

/* Something has changed: a pod, or what is registered. */
void resize_look(struct resize *resize);

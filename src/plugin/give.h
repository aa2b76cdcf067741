/* SPDX-License-Identifier: Apache-2.0 */
/* What a container gets: the slot of its pod's reservation becomes files on this node and the answer for the kubelet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "plugin/cluster/pod.h"
#include "plugin/grant/grant.h"
#include "plugin/grant/prefer.h"
#include "plugin/host/prepare.h"
#include "plugin/mig/parts.h"
#include "plugin/mps.h"

struct give_request {
	const struct pod *pods; /* all that are known, from the first on */
	const struct pod *pod;
	const struct pod_container *container;
	const char *slot; /* its text in the annotation */
	char *const *ids; /* the kubelet's choice */
	size_t id_count;
	struct flush *flush; /* what must be on the disk before the kubelet is answered */
};

struct given {
	uint8_t *message; /* ContainerAllocateResponse, packed; the caller frees it */
	size_t bytes;
	char *instances; /* of a pod with instances its new annotation, which the caller frees, else NULL */
	const struct pod
		*holder; /* of -EBUSY: the pod of those that has the place; NULL: none of them */
};

/* Of the node as it is now, and of its host. */
struct giver {
	struct grant_node node;
	struct prepare_settings settings;
	struct mps *mps;     /* NULL: no device is in that mode */
	struct parts *parts; /* NULL: no device is in mode mig */
	struct topology topology;
};

/*
 * Makes the container's files ready and packs the answer. Twice is the same as once. err is set with -EAGAIN: something is
 * on its way, to be asked for again in a moment; with -EBUSY: another pod has the place, if it is still there; and with -EINVAL and
 * the like. The pod's status will show it.
 */
int give(const struct giver *giver, const struct give_request *request, struct given *ret_given,
	struct err *err) MUST_CHECK;

/*
 * What the kubelet had best choose for the slot's container, or where there is no slot; the request's devices are filled in.
 * -ENODATA: it chooses by itself.
 */
int give_prefer(const struct giver *giver, const char *slot, struct prefer_request *request,
	const char **ret_ids) MUST_CHECK;

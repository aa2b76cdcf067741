/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's GPUs in mode mig: how they can be cut, the instances that their pods are given, and what becomes of these.
 *
 * A pod has its instances while its annotation reserves them and it is not over, also while it is terminating. What it was
 * given and is gone, because the machine was restarted, is made again before the kubelet can start its containers. What nobody
 * reserves is removed as soon as nothing uses it, and stops nothing else meanwhile.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "plugin/host/cdi.h"
#include "plugin/mig/claims.h"
#include "plugin/config/config.h"
#include "plugin/cluster/pods.h"
#include "policy/mig.h"

struct parts;

/* All of it is the caller's, for as long. */
struct parts_request {
	const struct config *config;
	const struct inventory *devices;
	const struct cdi_request *cdi; /* where instances are to be specified; NULL: nowhere */
	const char *capabilities;      /* CAPABILITY_PATH */
	/* What parts_are_restored() or parts_unready() say is other than before. */
	void (*changed)(void *context);
	void *context;
};

/* GPUs are brought into MIG mode where nothing uses them. -EIO and the like with err set; -ENOMEM. */
int parts_new(struct loop *loop, const struct parts_request *request, struct parts **ret_parts,
	struct err *err) MUST_CHECK;

/* Accepts NULL. */
void parts_free(struct parts *parts);

/* The pods are known, or have changed: what is to be made again or removed will be. */
void parts_look(struct parts *parts, const struct pods *pods);

/* A device or the driver is there again: what pods were given may have gone with it. */
void parts_look_at_devices(struct parts *parts);

/* What pods were given is there: true as well where no device is in mode mig. */
bool parts_are_restored(const struct parts *parts);

/* Devices that cannot be handed out as their mode says. */
uint64_t parts_unready(const struct parts *parts);

/* How the inventory's i-th device can be cut, where it is in mode mig, else NULL; *ret_most instances of one kind. */
const struct mig_profile *parts_profiles(
	const struct parts *parts, unsigned i, unsigned *ret_count, unsigned *ret_most);

/*
 * Makes the instances that the container has reserved, exactly these or none. -EAGAIN with err set: what no pod reserves any
 * more is still in use, and may be in the way for a moment. -EBUSY with err set: another has the place, by what is known of it,
 * and ret_given->holder is set. -EINVAL and the like with err set, a sentence for the pod's status.
 */
int parts_give(struct parts *parts, const struct claims_wanted *wanted,
	struct claims_given *ret_given, struct err *err) MUST_CHECK;

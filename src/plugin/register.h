/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's annotation by which the scheduler knows its devices. It is written where it is other than it should be,
 * and not otherwise: the same devices make the same text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "kube/client.h"
#include "plugin/cluster/node.h"
#include "policy/mig.h"

struct register_device {
	const char *uuid, *name; /* as NVML has them */
	unsigned index, slices;
	uint64_t memory_mib;
	unsigned cores_percent;
	int numa;			    /* below 0: unknown */
	const char *mode;		    /* "hami-core", "mig", "mps" */
	const struct mig_profile *profiles; /* of a device in mode mig */
	unsigned profile_count;
	bool is_healthy;
};

/* The annotation's text; the caller frees it. -ENOMEM. */
int register_format(
	const struct register_device *devices, unsigned count, char **ret_text) MUST_CHECK;

struct registration;

/* The node must be there as long. -ENOMEM. */
int registration_start(struct kube_client *client, struct node *node,
	struct registration **ret_registration) MUST_CHECK;

/* Accepts NULL. Before the end of the client. */
void registration_stop(struct registration *registration);

/*
 * What it should say from now on; the text is the registration's then. scores is the annotation of how near the devices are
 * to each other, the caller's, for as long; NULL: it is left as it is.
 */
void registration_set(struct registration *registration, char *text, const char *scores);

/* After the node was read. */
void registration_compare(struct registration *registration);

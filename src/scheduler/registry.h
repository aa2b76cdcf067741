/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a node, as its device plugin registered them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/fit.h"

#define REGISTRY_DEVICES "hami.io/node-nvidia-register"
#define REGISTRY_SCORES	 "hami.io/node-nvidia-score"
#define REGISTRY_CORDON	 "hami.io/device-cordon"

struct registry {
	struct fit_node node;
	struct fit_device *devices;
	struct mig_profile *profiles; /* of all devices */
	uint32_t *joins;
	char *texts;
	uint64_t healthy; /* bit i: the i-th device was registered so */
};

/* The annotations of a node; each may be NULL. */
struct registry_texts {
	const char *devices; /* JSON, or as v2.7 and older wrote it */
	const char *scores;
	const char *cordon; /* a list of UUIDs */
};

/*
 * Reads them; nothing is used yet. A device that is there twice counts once. Scores that are not understood count as none.
 * -ENOENT: no device is registered. -EINVAL with err set, which names the device; -ENOMEM.
 */
int registry_read(const struct registry_texts *texts, struct registry **ret_registry,
	struct err *err) MUST_CHECK;

/* The device of that UUID; NULL: it has none. */
struct fit_device *registry_find(const struct registry *registry, const char *uuid);

/* Nothing is used any more, and the devices are as healthy as they were registered. */
void registry_reset(struct registry *registry);

/* Accepts NULL. */
void registry_free(struct registry *registry);

/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this machine, as NVML tells them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "gpu/driver.h"
#include "gpu/uuid.h"

#define INVENTORY_MAX 64

struct inventory_device {
	unsigned index; /* NVML's: by PCI address */
	unsigned minor; /* the kernel's: /dev/nvidia<minor> */
	char uuid[UUID_TEXT_BYTES];
	char name[UUID_TEXT_BYTES];
	uint64_t total_bytes; /* 0: NVML does not tell */
	bool is_mig;	      /* in MIG mode: only its parts can be used */
};

struct inventory {
	struct inventory_device device[INVENTORY_MAX];
	unsigned count;
};

/* Asks NVML, which is begun. -EIO with err set. */
int inventory_read(const struct nvml_driver *nvml, struct inventory *ret_inventory,
	struct err *err) MUST_CHECK;

/* Adds the devices of `known` that the inventory lacks, in the order of their indices, as far as there is room. */
void inventory_keep(struct inventory *inventory, const struct inventory *known);

/*
 * The device that a person means by an index, a UUID, or the beginning of one that no other device has.
 * -ENODEV with err set, which lists the devices.
 */
int inventory_find(const struct inventory *inventory, const char *text,
	const struct inventory_device **ret_device, struct err *err) MUST_CHECK;

/* The device with exactly this UUID, or NULL. */
const struct inventory_device *inventory_lookup(
	const struct inventory *inventory, const char *uuid);

/* The name without the maker's: "H200". */
const char *inventory_short_name(const struct inventory_device *device);

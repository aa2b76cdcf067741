/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this machine, as its NVML tells them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/share.h"

#define DEVICES_MAX 64

struct device {
	unsigned index; /* NVML's: by PCI address */
	char uuid[SHARE_UUID_BYTES];
	char name[SHARE_UUID_BYTES];
	uint64_t total_bytes;
	bool is_mig; /* in MIG mode: only its parts can be used */
};

struct devices {
	struct device device[DEVICES_MAX];
	unsigned count;
};

enum {
	_DEVICES_E_SUCCESS = 0,
	DEVICES_E_NO_NVML, /* no NVML here, or no driver behind it; err says which */
};

/*
 * Asks NVML: the library at that path, or the machine's own where it is NULL. The library is left
 * again before this returns. 0, DEVICES_E_NO_NVML, or -errno, with err set.
 */
int devices_read(const char *library, struct devices *ret_devices, struct err *err) MUST_CHECK;

/*
 * The device that a person means by an index, a UUID, or the beginning of one that is nobody else's.
 * -ENODEV with err set, which lists those that there are.
 */
int devices_find(const struct devices *devices, const char *text, const struct device **ret_device,
	struct err *err) MUST_CHECK;

/* The device with exactly this UUID, or NULL. */
const struct device *devices_lookup(const struct devices *devices, const char *uuid);

/* The name without the maker's: "H200". */
const char *device_short_name(const struct device *device);

/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes for people and from them, in steps of 1,024. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "gpu/inventory.h"

#define SIZE_TEXT_BYTES 32

/* "0", "512K", "64M", "1.5G", "139.8G": one digit behind the point where it says something. */
void size_print(uint64_t bytes, char *ret_text);

/* The value of --memory; all zero: not given. */
struct size_quota {
	uint64_t bytes;	   /* SHARE_UNLIMITED for "unlimited", the share file's own word */
	uint16_t permille; /* or this part of each device */
};

static inline bool size_is_given(const struct size_quota *quota)
{
	return quota->bytes || quota->permille;
}

/* 0, or COMMAND_E_USAGE with err set, also for so little that something else was meant. */
int size_read_quota(const char *text, struct size_quota *ret_quota, struct err *err) MUST_CHECK;

/* What the quota is of a device with so much memory (0: not known). -ENODEV with err set where it is a part of that. */
int size_of_quota(const struct size_quota *quota, const char *uuid, uint64_t total_bytes,
	uint64_t *ret_bytes, struct err *err) MUST_CHECK;

/* Tells a person where a quota is more than the device has. */
void size_note_excess(uint64_t bytes, const struct inventory_device *device);

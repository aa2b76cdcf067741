/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share file: what a slice may have, written by its owner, read by its processes.
 *
 *	vgpu-share 1
 *	slice training-a                     (optional: a name for people)
 *	region /run/vgpu/training-a/region   (optional: the slice's region file)
 *	turns /run/vgpu-turns                (optional: the folder in which slices take turns)
 *	priority 0                           (optional: 0 goes first, 9 last; 1 where not given)
 *	burst 10                             (optional: ms of compute time that may be saved up, 1 to 1000)
 *	suspended                            (optional: nothing new may reach the device)
 *	exports none                         (optional: no descriptor of device memory is given out)
 *	imports any                          (optional: handles of plain memory that no process of the slice gave out are opened, too)
 *	mps /run/vgpu/mps/pipe               (optional: clients of this daemon's, side by side)
 *	device GPU-b0f6c78f-1e2d-81bf-660c-1bac5b80b05c memory 8g cores 30 cap 50 weight 200
 *	device * memory 2g                   (any device that has no line of its own)
 *	end
 *
 * Of a device's compute time, "cores" is what the slice is sure to get and "cap" what it never gets more
 * than, both in percent with at most one decimal; "weight" divides what nobody is sure of. Without "cap"
 * the cap is the cores; without both there is no limit. Under "mps", the pipe directory of a daemon of
 * NVIDIA's Multi-Process Service, they are parts of the multiprocessors, which the daemon divides.
 *
 * Lines that are empty or begin with # say nothing. The last line tells a whole file from a
 * truncated one. A device without a line is not granted: its quota is 0. "memory unlimited" is no quota:
 * what is taken is counted and not refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

#define SHARE_DEVICES	    16 /* as many as a region has room for */
#define SHARE_UUID_BYTES    96
#define SHARE_PATH_BYTES    256
#define SHARE_NAME_BYTES    64
#define SHARE_FILE_BYTES    8192 /* longest file, with its ending zero byte */
#define SHARE_ANY_DEVICE    "*"
#define SHARE_UNLIMITED	    UINT64_MAX
#define SHARE_SYSTEM_FOLDER "/etc/vgpu"
#define SHARE_SYSTEM_PATH   SHARE_SYSTEM_FOLDER "/share"
#define SHARE_SYSTEM_LIBRARY \
	"/etc/vgpu-lib" /* where the library is mounted that reads the share; others mount it elsewhere, and no share */
#define SHARE_LIBRARY_LIST \
	"/etc/ld.so.preload" /* by which a container loads the library that reads the share */

#define SHARE_WHOLE_PERMILLE   1000 /* all of a device's compute time */
#define SHARE_DEFAULT_WEIGHT   100
#define SHARE_MAX_WEIGHT       10000
#define SHARE_DEFAULT_PRIORITY 1
#define SHARE_MAX_PRIORITY     9
#define SHARE_DEFAULT_BURST_MS 10
#define SHARE_MAX_BURST_MS     1000

/* What a slice may have of a device's compute time; all zero: no limit, and nothing promised. */
struct share_compute {
	uint16_t cores_permille; /* sure to get; 0: nothing is promised */
	uint16_t cap_permille;	 /* never more; 0 or SHARE_WHOLE_PERMILLE: no limit */
	uint16_t weight;	 /* 1 to SHARE_MAX_WEIGHT; 0: SHARE_DEFAULT_WEIGHT */
};

struct share_device {
	char uuid[SHARE_UUID_BYTES]; /* or SHARE_ANY_DEVICE */
	uint64_t memory_bytes;
	struct share_compute compute;
};

struct share {
	char slice[SHARE_NAME_BYTES];  /* "" where not given */
	char region[SHARE_PATH_BYTES]; /* "" where not given */
	char turns[SHARE_PATH_BYTES];  /* "" where not given */
	char mps[SHARE_PATH_BYTES];    /* "" where not given */
	uint8_t priority;
	uint16_t burst_ms; /* 0 where not given: SHARE_DEFAULT_BURST_MS */
	bool is_suspended;
	bool has_no_exports;
	bool imports_any;
	struct share_device devices[SHARE_DEVICES];
	unsigned device_count;
};

/* Where and why a text is no share: a constant sentence and the line, counted from 1; 0 for all of it. */
struct share_fault {
	unsigned line;
	const char *why;
};

/*
 * Parses length bytes of text (which end with a zero byte that is not counted; others are
 * refused). 0, or -EINVAL with *ret_fault set and *ret_share untouched.
 */
int share_parse(const char *text, size_t length, struct share *ret_share,
	struct share_fault *ret_fault) MUST_CHECK;

/* The memory quota of the device in bytes: its own line's, else the "*" line's, else 0. */
uint64_t share_memory_bytes(const struct share *share, const char *uuid);

/*
 * The device's line: its own, else the "*" line; NULL where there is neither, and nothing is granted.
 */
const struct share_device *share_device(const struct share *share, const char *uuid);

/*
 * Writes the share as text that share_parse() reads, with an ending zero byte. -ENOSPC where it
 * does not fit; *ret_length without the zero byte.
 */
int share_format(
	const struct share *share, char *buffer, size_t size, size_t *ret_length) MUST_CHECK;

/* "30" or "12.5" as permille; false where it is neither, nothing at all, or more than all. */
bool share_read_percent(const char *text, uint16_t *ret_permille);

/* Whether text can be a slice's name: 1 to 63 letters, digits, '.', '_', '-', not beginning with '.'. */
bool share_name_is_valid(const char *text);

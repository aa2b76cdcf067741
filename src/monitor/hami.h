/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region of a container as HAMi's library writes it, and ours in its first part: layouts v0 and v1.
 *
 * The container can write it at any time, and make it longer or shorter: it is read with read(2) and never mapped, and no figure in it
 * is believed to be in bounds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/layout.h"

struct hami_device {
	char uuid[REGION_UUID_BYTES];
	uint64_t limit_bytes; /* 0: none */
	uint64_t used_bytes, context_bytes, module_bytes, buffer_bytes,
		offset_bytes;  /* of all processes */
	uint64_t busy_percent; /* likewise, as they say themselves */
};

struct hami_figures {
	struct hami_device devices[REGION_DEVICES];
	unsigned device_count, process_count;
	uint64_t last_launch_s; /* of the machine's clock; 0: not told */
	int32_t recent_launches, is_limited, priority;
	bool is_granted; /* priority and devices are root's word (scan.h), not the container's own */
};

enum {
	_HAMI_E_SUCCESS = 0,
	HAMI_E_FOREIGN, /* it has none of these layouts, or is not filled in yet */
};

/* Reads the open file: 0, HAMI_E_FOREIGN, or -errno. */
int hami_read(int fd, struct hami_figures *ret_figures) MUST_CHECK;

/*
 * Tells the container's library: recent_launches below 0 holds its work back, and is_limited 0 lifts its limit of cores. The file was
 * opened for writing. 0, HAMI_E_FOREIGN, or -errno; a file that has become shorter is not made longer.
 */
int hami_write(int fd, int32_t recent_launches, int32_t is_limited) MUST_CHECK;

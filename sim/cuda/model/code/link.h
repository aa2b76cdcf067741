/* SPDX-License-Identifier: Apache-2.0 */
/* The linker's works: texts one behind the other, or one other image. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/cuda/model/driver.h"

/* Never freed, so that a stale handle is refused. Like the interface for one thread at a time. */
struct link {
	uint32_t magic; /* 0 once destroyed */
	struct relic relic;
	bool is_complete;
	char *data; /* with a zero behind it */
	size_t bytes;
};

struct link *link_new(void);
struct link *link_check(CUlinkState state);
/* Adds an image, which is copied. */
CUresult link_add(struct link *link, CUjitInputType type, const void *data, size_t bytes);
void link_end(struct link *link);

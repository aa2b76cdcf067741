/* SPDX-License-Identifier: Apache-2.0 */
/* Files on their way to the disk, which other threads wait for while the plugin asks the API server. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/bits.h"
#include "node/folder.h"

struct flush {
	struct folder_later later; /* what is to be written, and not yet begun */
	struct folder_later begun;
	pthread_t thread;
	bool has_thread;
	int result;
};

/* Begins to write what is in the list. Nothing else may be under way. */
void flush_begin(struct flush *flush);

/* Waits until what was begun is on the disk; -errno of one that failed. */
int flush_wait(struct flush *flush) MUST_CHECK;

/* Waits for what is left, whatever comes of it. */
void flush_deinit(struct flush *flush);

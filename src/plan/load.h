/* SPDX-License-Identifier: Apache-2.0 */
/* The world that a command line names. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "plan/live.h"
#include "plan/options.h"
#include "plan/world.h"

/* What is read stays until world_deinit() and reader_deinit(). */
struct load {
	struct world world;
	struct reader_list objects, live_objects;
	struct live *live; /* NULL: files say all */
};

/*
 * Reads files, and where --nodes names none, the cluster; then what is imagined. -EINVAL with err set: what was given is not understood;
 * -EIO and others: the cluster could not be asked.
 */
int load(const struct options *options, void (*warn)(const char *words), struct load *ret_load,
	struct err *err) MUST_CHECK;

/* Accepts what is all zero. */
void load_deinit(struct load *load);

/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that take what was found in a graph, beside those that change it. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/makings.h"

#include <stdatomic.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/patience.h"

static _Atomic uint32_t makings; /* under way */
/* Calls that destroy an executable graph, or are for one that is not known, or change a graph or take code away: under way, or waiting for makings. */
static _Atomic uint32_t strangers;
static _Atomic uint32_t waiting; /* makings that wait for these: no change begins before they do */

bool makings_begin(void)
{
	struct patience patience = patience_begin(MAKINGS_WAIT_NS);
	bool is_free;

	for (;;) {
		/* pairs with the load in makings_stranger_begin(): one of the two sees the other */
		atomic_fetch_add(&makings, 1);
		if (LIKELY(!atomic_load(&strangers)))
			return true;
		atomic_fetch_sub(&makings, 1);
		atomic_fetch_add(&waiting, 1);
		is_free = patience_wait_for_zero(&strangers, &patience);
		atomic_fetch_sub(&waiting, 1);
		if (!is_free)
			break;
	}
	log_error("a graph is being changed, an executable one destroyed, or code unloaded for too "
		  "long, so none is made");
	return false;
}

void makings_end(void)
{
	FAULT("graph: made");
	atomic_fetch_sub(&makings, 1);
}

void makings_stranger_end(void)
{
	atomic_fetch_sub(&strangers, 1);
}

/* Makings that begin wait for it, so it is not kept waiting by those that follow each other. */
bool makings_stranger_begin(void)
{
	struct patience patience = patience_begin(MAKINGS_WAIT_NS);

	/* pairs with the load in makings_begin() */
	atomic_fetch_add(&strangers, 1);
	if (patience_wait_for_zero(&makings, &patience))
		return true;
	makings_stranger_end();
	log_error("an executable graph is being made for too long, so none is destroyed, and no "
		  "graph is changed");
	return false;
}

/* Who changes graphs all the time in several threads would keep those that make one waiting. */
bool makings_change_begin(void)
{
	struct patience patience = patience_begin(MAKINGS_WAIT_NS);

	return patience_wait_for_zero(&waiting, &patience) && makings_stranger_begin();
}

bool makings_try_change_begin(void)
{
	atomic_fetch_add(&strangers, 1);
	if (!atomic_load(&makings))
		return true;
	makings_stranger_end();
	return false;
}

void makings_change_end(void)
{
	makings_stranger_end();
}

void makings_reset_after_fork(void)
{
	atomic_store(&makings, 0);
	atomic_store(&strangers, 0);
	atomic_store(&waiting, 0);
}

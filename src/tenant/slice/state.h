/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's part in its slice: mode, region, slot, devices.
 *
 * It begins at the first hooked call that matters and is begun anew in a child of fork(). There is
 * one such state a process, and no thread, no exit handler, and no
 * signal handler but that of signals.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"
#include "region/region.h"
#include "tenant/slice/begun.h"

#define STATE_ORDINALS 64 /* CUDA devices of a process that we can tell apart */

/* A device of this process. */
struct device {
	unsigned entry; /* its place in the region */
	CUdevice ordinal;
	char uuid[96];
	_Atomic uint32_t limit_units; /* LEDGER_NO_LIMIT: none */
	_Atomic bool is_shrunk; /* the limit was lowered, and oom.c has not seen it kept since */
	/* 0: nobody watches; else one more than the units held after any charge since (charge_watch()) */
	_Atomic uint64_t watched;
};

struct state {
	struct region region;
	unsigned slot;
};
extern struct state state;

enum state_mode state_begin(void);

/*
 * Around the driver's cuInit(), whoever calls it: the driver in this memory is this process's from then on. Where an ancestor by fork has
 * called it, the driver knows that ancestor, whose memory and work all would be that is asked of it here.
 */
void state_driver_begins(void);
void state_driver_begun(bool is_initialised);

/* Begins where the driver is an ancestor's, so that it is refused (attach_refuse_cuda()). Before a call that may be a process's first. */
void state_meet_driver(void);

/* Every charge is refused, in children of fork() as well. Context: before main(). */
void state_close_for_ever(void);

/*
 * The mode, begun on first use. Every hook that may charge asks it first; the driver's table must be
 * attached. Context: any thread; after the first time two loads.
 */
static inline enum state_mode state_enter(void)
{
	/* relaxed: see make_word() */
	struct state_word *word = atomic_load_explicit(&state_word, memory_order_relaxed);
	/* pairs with the release in state_begin() */
	uint32_t mode = atomic_load_explicit(&word->mode, memory_order_acquire);

	return LIKELY(mode != STATE_NEW) ? (enum state_mode)mode : state_begin();
}

/*
 * What happens when our own machinery fails where a quota was asked for: memory is refused from now
 * on. Says why once. The only place that decides this (docs/decisions/0002-fail-closed.md).
 */
void state_on_failure(const char *what, const char *why);

/* The device of the ordinal where this process has met it, else NULL. */
struct device *state_known_device(CUdevice ordinal);

/* A device that this process has met; for ordinals that state_meet_device() has given. */
struct device *state_device(CUdevice ordinal);

/*
 * The device of the CUDA ordinal, entered into the region on first use. Mode is STATE_OPEN. -ENODEV
 * where the driver knows no such device (it will say so itself, in its own words); any other
 * negative number: it cannot be entered, and nothing may be allocated on it.
 */
int state_meet_device(CUdevice ordinal, struct device **ret_device) MUST_CHECK;

/* The current context's device; the driver's own error where there is none. */
CUresult state_current_device(struct device **ret_device);

/* Makes quotas that a changed share file gives hold; see quota_refresh(). */
void state_refresh_limits(bool is_urgent);

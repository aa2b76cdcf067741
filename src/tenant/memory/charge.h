/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges: reserve, call the driver, keep or undo.
 *
 *	_cleanup_charge_ struct charge charge = CHARGE_NULL;
 *	CUresult r = charge_reserve(device, bytes, CHARGE_PLAIN, &charge);
 *	if (r == CUDA_SUCCESS)
 *		r = cuda.cuMemAlloc_v2(...);
 *	if (r == CUDA_SUCCESS)
 *		charge_take(&charge);
 *
 * What is reserved is in the books before the driver is called, so what the driver gives is never
 * more than what the books say.
 */
#pragma once

#include "base/bits.h"
#include "tenant/driver/current.h"
#include "tenant/slice/state.h"

struct charge {
	struct device *device; /* NULL: nothing is charged */
	uint32_t units;
	enum charge_kind kind;
	bool is_under_way;  /* reserved, and counted in the traffic until it is committed */
	uint32_t shared;    /* + 1: moved to this shared allocation until it is settled (pools.c) */
	uint32_t unsettled; /* units: what it counts for there (charge_unsettled_bytes()) */
	uint64_t since;	    /* charge_since() when it was reserved */
	uint64_t unnamed;   /* and charge_unnamed_since() */
	uint64_t current;   /* and current_since(), before its device was asked for */
	uint64_t life;	    /* of a context's local memory: its life (local.c) */
	uint64_t found_bytes; /* of a context's: reconcile_found_bytes() before it */
};

/*
 * Calls of this process that change what the driver holds: begun << 32 | under way, as a sum over words. While
 * one is under way, books and driver may differ by it, so a comparison of the two (reconcile.h) is exact only if
 * the sum was the same before and after, with no call under way but the comparing one. A reservation counts by
 * itself; a call that gives back has a CHARGE_SCOPE().
 *
 * A thread has a word that it alone writes, for the life of the process. Those that come when all are taken share the
 * others. A call may leave by another word than it entered.
 */
struct charge_word {
	_Atomic uint64_t calls;
	_Atomic uint64_t unsettled; /* bytes: see charge_unsettled_bytes() */
};
extern __thread struct charge_word *charge_own_word;
#define CHARGE_CALL ((UINT64_C(1) << 32) + 1)

void charge_enter_slowly(void);
void charge_leave_slowly(void);
void charge_unsettle_slowly(uint64_t bytes);

static inline int charge_enter(void)
{
	struct charge_word *own = charge_own_word;

	if (UNLIKELY(!own)) {
		charge_enter_slowly();
		return 0;
	}
	/* relaxed: written by this thread alone */
	atomic_store_explicit(&own->calls,
		atomic_load_explicit(&own->calls, memory_order_relaxed) + CHARGE_CALL,
		memory_order_relaxed);
	/* pairs with charge_traffic(): a comparison that sees what the call does sees that it has begun */
	atomic_thread_fence(memory_order_release);
	return 0;
}

static inline void charge_leave(const int *scope)
{
	struct charge_word *own = charge_own_word;

	(void)scope;
	if (UNLIKELY(!own))
		charge_leave_slowly();
	else
		/* pairs with charge_traffic(): who sees the end sees what was done; relaxed: as above */
		atomic_store_explicit(&own->calls,
			atomic_load_explicit(&own->calls, memory_order_relaxed) - 1,
			memory_order_release);
}

/* The sum now, as of no single instant: equal twice in a row, nothing moved in between. */
uint64_t charge_traffic(void);

/*
 * What calls under way have reserved and may not have got yet, or may have given back and have in the books still: of a call that
 * gives back and does not say how much, more than there can be. It counts from before the call is under way until after it is
 * not any more.
 */
#define CHARGE_ANY_BYTES (UINT64_C(1) << 48)
uint64_t charge_unsettled_bytes(void);

static inline void charge_unsettle(uint64_t bytes)
{
	struct charge_word *own = charge_own_word;

	if (UNLIKELY(!own))
		charge_unsettle_slowly(bytes);
	else
		/* pairs with charge_unsettled_bytes(): who sees it less sees that the call has left; relaxed: as above */
		atomic_store_explicit(&own->unsettled,
			atomic_load_explicit(&own->unsettled, memory_order_relaxed) + bytes,
			memory_order_release);
}

/* The state comes first: in a child of fork() it makes the sum new. */
static inline uint64_t charge_enter_scope(void)
{
	(void)state_enter();
	charge_unsettle(CHARGE_ANY_BYTES);
	charge_enter();
	return CHARGE_ANY_BYTES;
}

static inline void charge_leave_scope(const uint64_t *bytes)
{
	charge_leave(NULL);
	charge_unsettle(-*bytes);
}

/* The enclosing scope is such a call. */
#define CHARGE_SCOPE()                                                                     \
	__attribute__((cleanup(charge_leave_scope), unused)) uint64_t charge_scope_bytes = \
		charge_enter_scope()

/* It gives back no more than this. */
#define CHARGE_SCOPE_ENDS(bytes) charge_scope_ends(&charge_scope_bytes, (bytes))
static inline void charge_scope_ends(uint64_t *scope_bytes, uint64_t bytes)
{
	charge_unsettle(bytes - *scope_bytes);
	*scope_bytes = bytes;
}

/*
 * Calls by which the driver may end what the books know nothing of: of a pointer or handle that is in no table, or of a context.
 * Begun << 32 | under way. Where none was under way when a charge was reserved, and none has begun since, what the driver gave
 * for it is still there when it is entered. Otherwise another thread may have ended it, and have been given the same pointer or handle.
 */
extern _Atomic uint64_t charge_strays;

static inline uint64_t charge_since(void)
{
	/* pairs with charge_stray_begins(), which comes before the driver's call */
	return atomic_load(&charge_strays);
}

static inline bool charge_is_sure(uint64_t since)
{
	return (uint32_t)since == 0 && since == charge_since();
}

static inline int charge_stray_begins(void)
{
	atomic_fetch_add(&charge_strays, CHARGE_CALL);
	return 0;
}

static inline void charge_stray_ends(const int *scope)
{
	(void)scope;
	atomic_fetch_sub(&charge_strays, 1);
}

/* The rest of the enclosing block is such a call. */
#define CHARGE_STRAY_SCOPE()                                                    \
	__attribute__((cleanup(charge_stray_ends), unused)) int charge_stray_ = \
		charge_stray_begins()

/*
 * Calls by which memory may come to the device that nobody names: code, its variables, streams. Begun << 32 | under way. Where none
 * was under way when a chunk came, and none has begun since, all that lies in it is known.
 */
void charge_unnamed_begins(const struct device *device);
void charge_unnamed_ends(const struct device *device);
uint64_t charge_unnamed_since(const struct device *device);

/* Those of them that load or unload code, or let it be used first: our own comparisons are none. */
void charge_code_begins(const struct device *device);
void charge_code_ends(const struct device *device);
uint64_t charge_code_since(const struct device *device);

/* The kind becomes what it was again, after charge_hide(). */
void charge_show(struct device *device, uint64_t bytes, enum charge_kind kind);

#define CHARGE_NULL            \
	{                      \
		.device = NULL \
	}

/*
 * Reserves bytes, rounded up to the ledger's unit. Where they do not fit, it first looks for what
 * can be had back: a quota that was raised, pools' unused memory, processes that have died.
 * CUDA_ERROR_OUT_OF_MEMORY is the only refusal. Waits at most SLOT_REAP_WAIT_NS for other
 * processes, and only then, however often a call of the program comes here.
 */
CUresult charge_reserve(
	struct device *device, uint64_t bytes, enum charge_kind kind, struct charge *ret_charge);

/*
 * The same for the current context's device, and what a hook does first: with nothing to enforce it
 * charges nothing and says CUDA_SUCCESS; where quotas cannot be enforced it refuses.
 */
CUresult charge_reserve_current(uint64_t bytes, enum charge_kind kind, struct charge *ret_charge);

/* Charges what the driver has taken already, even over the quota. */
void charge_anyway(struct device *device, uint64_t bytes, enum charge_kind kind);

/* Gives bytes back. */
void charge_give_back(struct device *device, uint64_t bytes, enum charge_kind kind);

/*
 * What stays charged as a descriptor may keep it: NVML may show it for nobody, so it is of the kind of which that is
 * known (reconcile.c), or it would hide as much that nobody names.
 */
void charge_hide(struct device *device, uint64_t bytes, enum charge_kind kind);

/* Ends the charge's scope without giving it back; its bytes are what charge_give_back() takes later. */
uint64_t charge_take(struct charge *charge);

/*
 * Ends the charge's scope; of what it reserved, and of what was charged before, so many bytes are to
 * be charged more (or less, if negative) than before the reservation. For a charge that reserved
 * nothing, device and kind are used alone.
 */
void charge_commit(struct charge *charge, int64_t bytes);

/*
 * Where the driver refuses to let go again what it made, and what is kept by no entry: it stays charged until the process
 * ends.
 */
void charge_let_go(struct charge *charge, CUresult r);

/* Gives the charge back, if it was not taken. */
void charge_undo(struct charge *charge);

/*
 * Compares the books with the driver and gives back what processes that have died still hold on the
 * device, at most every CHARGE_LOOK_NS: for a program that asks how much is free and plans by the answer.
 */
#define CHARGE_LOOK_NS 100000000u
void charge_put_right(struct device *device);

/* What this process holds of the device now. */
uint64_t charge_held_bytes(const struct device *device);

/*
 * The same; and then the most that it held after any charge since, 0
 * where there was none. What the driver gives is charged before and given back after, so what it has for
 * us at any instant between the two is at most the larger one. One watcher at a time.
 */
uint64_t charge_watch(struct device *device);
uint64_t charge_watched(struct device *device);

/* Whether more is charged than there may be, though all was looked for that can be had back. */
bool charge_is_above_quota(struct device *device);

/* Has back whatever the slice holds in vain, as before a refusal: may wait SLOT_REAP_WAIT_NS. */
void charge_have_back(struct device *device);

/* Only looks for the dead, and for shared allocations that nobody holds. */
void charge_reap(struct device *device);

/* For a child of fork(). */
void charge_reset_after_fork(void);

#define _cleanup_charge_ __attribute__((cleanup(charge_undo)))

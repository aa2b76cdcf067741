/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own figure beside the books.
 *
 * A driver also takes device memory that no call announces or that is not charged yet: code of
 * kernels, streams, its own workspaces. NVML's figure for this process shows it. What is more there
 * than in the books is charged as unattributed, so that what the process allocates and what the driver
 * takes for it stay within the quota together.
 */
#pragma once

#include "tenant/memory/charge.h"
#include "tenant/slice/parts.h"

/* One question to NVML takes 0.34 ms (H200): once a second is 0.034 % of a processor. */
#define RECONCILE_CHECK_NS 1000000000u

/*
 * Makes charges compare from now on, at most every TRUTH_CHECK_NS, and before anything is refused.
 * Where NVML has no figure for this process the books stand alone.
 */
void reconcile_start(struct device *device);

void reconcile_compare(struct device *device, enum parts_when when);

/*
 * When a call of the program has ended and nothing of it is under way any more. Where a comparison could not be exact
 * because of other calls (driver/call_end.h), the last of them to end makes it good: the process may make none for long, and
 * others of the slice would lack what it has in its books and not on the device. Calls that begin meanwhile wait
 * for that (quiet.h), some ms and 20 at most. What may be in no books is looked for when any call ends, whatever
 * else is under way, as there may be no last one.
 */
void reconcile_pay(void);

/*
 * After a call that may have taken memory which nobody names (guard.h): ends the reservation's scope
 * and charges what NVML now shows beyond the books. Where it has no figure for this process, what the device's free
 * memory fell by is charged until the context ends. Waits at
 * most RECONCILE_WAIT_NS for another thread's comparison; then the whole reservation stays charged until
 * the next one.
 *
 * What a call of another thread has reserved, and not got yet, would be cover for as much that a call took of which nobody knows
 * what it takes. Such a call is measured when none of that is under way; for that it waits RECONCILE_ALONE_NS at most, once in 16 s, while
 * calls that begin wait for it, 20 ms at a time. Then it is charged as if nothing that is under way had come, and all that
 * is being given back had gone; where that cannot be told either, it is not measured.
 */
#define RECONCILE_WAIT_NS  UINT64_C(2000000000)
#define RECONCILE_ALONE_NS UINT64_C(1000000000)
struct reconcile_call {
	int64_t free_change_bytes; /* by so much the device's free memory fell during the call */
	uint64_t life;		   /* of the context that took it */
	bool is_quiet;		   /* nothing else in the slice has taken or given back meanwhile */
	bool is_open_ended;	   /* nobody knows what the call takes, and it can be undone */
	bool is_bounded;	   /* the call takes what is reserved, or little more */
	bool is_end;		   /* the call gives back, and takes nothing */
};
struct growth {
	int64_t charged_bytes;
	bool is_measured; /* else the reservation is charged, whatever the call took, and more may be hidden */
	bool is_told;	 /* by the figure of this process, and not by what the device lost */
	bool is_certain; /* that is what the call took; else the careful side of it */
};
struct growth reconcile_guarded(
	struct device *device, struct charge *charge, const struct reconcile_call *call);

/*
 * All that was ever found for this process on the device beyond what its calls had reserved. A call in which it has grown
 * may have taken that; one in which it has not took no more than it had reserved, and is not refused for the slice being
 * above its quota, which others were the reason of.
 */
uint64_t reconcile_found_bytes(const struct device *device);

/* Before a call that is refused where it takes too much: what is there already is found now, and not taken for its. */
void reconcile_before(struct device *device);

/*
 * By how much the books are above NVML's figure for this process; 0 where that cannot be told now. Not
 * a proof by itself that something was given back: another thread's reservation looks the same.
 */
uint64_t reconcile_spare_bytes(const struct device *device);

/* NVML's figure for this process, and its calls then. */
struct reconcile_figure {
	uint64_t used_bytes, traffic;
	bool is_told;
};
struct reconcile_figure reconcile_ask(const struct device *device);
/* Whether it rose by so much while the call that asked before was the only one under way. */
bool reconcile_has_risen(
	const struct device *device, const struct reconcile_figure *before, uint64_t bytes);

/*
 * Whether NVML shows for this process what is being charged, and was not there yet before: the figure rose by it while no
 * other call was under way, or has it beyond all that is in the books. False where it has not, or that cannot be told.
 */
bool reconcile_is_shown(struct device *device, const struct charge *charge,
	const struct reconcile_figure *before) MUST_CHECK;

/*
 * Memory that was in the books is gone, and nobody knows since when: what others took since may have been taken for it. Or the last
 * block of a chunk is, and a module's variable may lie there, or what else nobody names. So it stays charged as what nobody names, and a
 * comparison is owed, which says how much of that there is.
 */
void reconcile_doubt(struct device *device, uint64_t bytes, enum charge_kind kind);

/* The same of what may be there still; false without a figure, which would have to tell: then it is charged as before. */
bool reconcile_leave_to_figure(
	struct device *device, uint64_t bytes, enum charge_kind kind) MUST_CHECK;
bool reconcile_has_figure(const struct device *device);

/*
 * Before the last known block of a chunk is freed, and after that, while it is still in the books: whether the chunk has gone with it, as
 * NVML shows so much less for this process beside books that say the same, and no other call was under way. False where it has not, or
 * that cannot be told. Two questions to NVML.
 */
struct reconcile_chunk {
	int64_t beyond_bytes;
	uint64_t traffic;
	bool is_told;
};
struct reconcile_chunk reconcile_chunk_ends(struct device *device);
bool reconcile_chunk_is_gone(
	struct device *device, const struct reconcile_chunk *before, uint64_t bytes) MUST_CHECK;

/* What may have been shown here or not is gone, and a comparison can tell what the rest is. */
void reconcile_look_again(const struct device *device);

/* Something is gone that may have been charged as unattributed. */
void reconcile_look_for_less(const struct device *device);

/*
 * What a call took may be in no books: for that the process begins NVML, too. False where nobody could look for it for a while, as a
 * comparison does not end, say: then what the call had reserved has to stay charged (reconcile_doubt()).
 */
bool reconcile_look_for_more(const struct device *device) MUST_CHECK;

/*
 * A context is gone, and with it what the driver took for it. Where NVML has no figure, with the last one all is;
 * before that, what reconcile_guarded() charged to its life.
 */
void reconcile_forget(struct device *device, bool is_last);
void reconcile_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void reconcile_reset_after_fork(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: checkpoints of processes.
 *
 * What a program of the slice checkpoints stays charged, so it may bring it back. What an operator has moved to the host is out of the
 * ledger (region/evict.h), and others may have its room: the operator alone brings that back, and while the slice is suspended nobody
 * of it changes what its processes are in.
 */
#define LOG_TOPIC LOG_LEDGER
#include "base/cleanup.h"
#include "base/log.h"
#include "region/evict.h"
#include "tenant/hooks/hook.h"
#include "tenant/slice/quota.h"
#include "tenant/slice/state.h"

#define HOLD_NULL        \
	{                \
		.fd = -1 \
	}

/* Of a process that it does not know the driver says so itself, as it would without us. */
static CUresult refuse(int pid, const char *why)
{
	CUprocessState its_state;
	CUresult r = cuda.cuCheckpointProcessGetState
			     ? cuda.cuCheckpointProcessGetState(pid, &its_state)
			     : CUDA_SUCCESS;

	if (r != CUDA_SUCCESS)
		return r;
	log_warn("a checkpoint is refused", U64("of", (uint64_t)pid), STR("why", why));
	return CUDA_ERROR_NOT_PERMITTED;
}

/* Whether the process is one of the slice, and its program's to stop and to bring back: its books stay where they are until the hold ends. */
static CUresult begin(int pid, struct evict_hold *ret_hold)
{
	enum state_mode mode = state_enter();
	int r;

	if (mode == STATE_ASIDE)
		return CUDA_SUCCESS;
	if (mode == STATE_CLOSED)
		return refuse(pid, "quotas cannot be enforced");
	state_refresh_limits(true);
	if (quota_is_suspended())
		return refuse(pid, "the slice is suspended");
	r = evict_hold(&state.region, state.slot, (uint32_t)pid, ret_hold);
	if (r == EVICT_E_AWAY)
		return refuse(pid, "the slice's memory was moved to the host from outside");
	if (r == EVICT_E_GONE)
		return refuse(pid, "it is no process of this slice");
	return r == 0 ? CUDA_SUCCESS : refuse(pid, "its accounting cannot be kept");
}

static void end(const struct evict_hold *hold)
{
	evict_let_go(&state.region, hold);
}

#define HELD _cleanup_(end) struct evict_hold hold = HOLD_NULL

/* What moves no memory, and may wait for long, is asked without the hold. */
static CUresult begin_without(int pid)
{
	HELD;

	return begin(pid, &hold);
}

#define WITHOUT_HOLD(symbol, type)                                     \
	HOOK_BODY(symbol, int, pid, type *, args)                      \
	{                                                              \
		CUresult r = begin_without(pid);                       \
                                                                       \
		return r == CUDA_SUCCESS ? cuda.symbol(pid, args) : r; \
	}

/* For processes of the slice alone, while it is not suspended. */
WITHOUT_HOLD(cuCheckpointProcessLock, CUcheckpointLockArgs)
WITHOUT_HOLD(cuCheckpointProcessUnlock, CUcheckpointUnlockArgs)

/* Nobody takes the memory that becomes free for memory that somebody has freed (evict_stays()). */
HOOK_BODY(cuCheckpointProcessCheckpoint, int, pid, CUcheckpointCheckpointArgs *, args)
{
	HELD;
	CUresult r = begin(pid, &hold);

	return r == CUDA_SUCCESS ? cuda.cuCheckpointProcessCheckpoint(pid, args) : r;
}

/* The same, and on the devices where it was: on others nobody would be charged for it. */
HOOK_BODY(cuCheckpointProcessRestore, int, pid, CUcheckpointRestoreArgs *, args)
{
	HELD;
	CUresult r;

	(void)(args && HOOK_COPY(args));
	r = begin(pid, &hold);
	if (r == CUDA_SUCCESS && args && args->gpuPairsCount > 0 && state_enter() != STATE_ASIDE)
		r = CUDA_ERROR_NOT_SUPPORTED;
	return r == CUDA_SUCCESS ? cuda.cuCheckpointProcessRestore(pid, args) : r;
}

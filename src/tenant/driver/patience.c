/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for another thread's call. */
#include "tenant/driver/patience.h"

#include "tenant/driver/attach.h"

#define QUESTIONS 4

/* A question that takes so long was stopped itself. */
#define STOPPED_NS UINT64_C(100000000)

/* Between two questions while it is stopped. */
#define REST_NS 10000000

bool patience_is_stopped(void)
{
	CUprocessState its_state = CU_PROCESS_STATE_RUNNING;
	uint64_t begin_ns = clock_now_ns();

	if (!cuda.cuCheckpointProcessGetState ||
		cuda.cuCheckpointProcessGetState(getpid(), &its_state) != CUDA_SUCCESS)
		return false;
	return its_state == CU_PROCESS_STATE_LOCKED || its_state == CU_PROCESS_STATE_CHECKPOINTED ||
	       clock_now_ns() - begin_ns > STOPPED_NS;
}

struct patience patience_begin(uint64_t longest_ns)
{
	uint64_t now_ns = clock_now_ns();

	return (struct patience){.longest_ns = longest_ns,
		.until_ns = now_ns + longest_ns,
		.ask_ns = now_ns + longest_ns / QUESTIONS};
}

bool patience_is_over(struct patience *p)
{
	uint64_t now_ns = clock_now_ns();

	if (LIKELY(now_ns < p->ask_ns))
		return false;
	if (patience_is_stopped()) {
		int saved_errno = errno;

		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
		errno = saved_errno;
		*p = patience_begin(p->longest_ns);
		p->ask_ns = now_ns;
		return false;
	}
	/* Once over it stays so, however often it is asked. */
	if (now_ns >= p->until_ns)
		return true;
	p->ask_ns = now_ns + p->longest_ns / QUESTIONS;
	return false;
}

bool patience_lock(struct lock *lock, uint64_t longest_ns)
{
	struct patience patience;

	if (lock_try(lock))
		return true;
	patience = patience_begin(longest_ns);
	for (unsigned i = 0; !lock_try(lock); i++) {
		if (patience_is_over(&patience))
			return false;
		lock_rest(i);
	}
	return true;
}

bool patience_wait_for_zero(const _Atomic uint32_t *count, struct patience *patience)
{
	for (unsigned i = 0; atomic_load(count); i++) {
		if (patience_is_over(patience))
			return false;
		lock_rest(i);
	}
	return true;
}

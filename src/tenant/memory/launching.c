/* SPDX-License-Identifier: Apache-2.0 */
/* Launches on their way to the driver. */
#include "tenant/memory/launching.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of <linux/membarrier.h>, which old systems lack: of this process alone, at once. */
#define BARRIER_BEGIN 16 /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED */
#define BARRIER_NOW   8	 /* MEMBARRIER_CMD_PRIVATE_EXPEDITED */

/* Where the kernel has none, or a filter of system calls forbids it: a store is seen after far less. */
#define BARRIER_REST_NS 1000000

/* How often it is asked for whether the thread that is waited for lives. */
#define ENDED_EACH 256

/* Threads that launch at one time. What comes when all are taken is pinned at each launch. */
#define WORDS 1024
static struct launching words[WORDS];
static _Atomic uint32_t high; /* words below it have been somebody's */

static struct launching none = {
	.function = 1}; /* of threads that found no word: as if always within a launch */

__thread struct launching *launching_own;

static bool has_ended(int thread)
{
	int saved_errno = errno;
	bool is_gone = syscall(SYS_tgkill, getpid(), thread, 0) < 0 && errno == ESRCH;

	errno = saved_errno;
	return is_gone;
}

static bool take(struct launching *word, int before, int thread)
{
	if (!atomic_compare_exchange_strong(&word->thread, &before, thread))
		return false;
	atomic_store(&word->function, 0);
	atomic_store(&word->context, NULL);
	launching_own = word;
	return true;
}

static bool take_new(int thread)
{
	uint32_t i = atomic_load(&high);

	while (i < WORDS)
		/* Whoever looks at the words looks at this one before it is used. */
		if (atomic_compare_exchange_strong(&high, &i, i + 1))
			return take(&words[i], 0, thread);
	return false;
}

/* The word of a thread that has ended. They are looked at by turns, so that few are alive of those that are asked for. */
static bool take_left(int thread)
{
	static _Atomic uint32_t next;

	for (uint32_t i = 0; i < WORDS; i++) {
		/* relaxed: where the search goes on */
		uint32_t at = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % WORDS;
		int owner = atomic_load(&words[at].thread);

		if ((!owner || owner == thread || has_ended(owner)) &&
			take(&words[at], owner, thread))
			return true;
	}
	return false;
}

void launching_take_word(void)
{
	int thread;

	if (LIKELY(launching_own))
		return;
	thread = (int)syscall(SYS_gettid);
	if (!take_new(thread) && !take_left(thread))
		launching_own = &none;
}

/* Each processor that runs a thread of this process sees and shows what was written before. */
static void make_visible(void)
{
	struct timespec rest = {.tv_nsec = BARRIER_REST_NS};
	int saved_errno = errno;

#ifdef SYS_membarrier
	if (syscall(SYS_membarrier, BARRIER_BEGIN, 0, 0) == 0 &&
		syscall(SYS_membarrier, BARRIER_NOW, 0, 0) == 0) {
		errno = saved_errno;
		return;
	}
#endif
	nanosleep(&rest, NULL);
	errno = saved_errno;
}

/* Only the launch that is there: those that come find no mark. */
static bool wait_for(const struct launching *word, launching_wanted_fn *is_wanted, uint64_t what,
	struct patience *patience)
{
	uintptr_t function = atomic_load(&word->function);

	if (!function || !is_wanted((CUfunction)function, atomic_load(&word->context), what))
		return true;
	if (word == launching_own)
		return false;
	for (unsigned i = 1; atomic_load(&word->function) == function; i++) {
		/* It was cancelled there. */
		if (i % ENDED_EACH == 0 && has_ended(atomic_load(&word->thread)))
			return true;
		if (patience_is_over(patience))
			return false;
		lock_rest(i);
	}
	return true;
}

bool launching_wait(launching_wanted_fn *is_wanted, uint64_t what, struct patience *patience)
{
	uint32_t count;

	make_visible();
	count = atomic_load(&high);
	for (uint32_t i = 0; i < count; i++)
		if (!wait_for(&words[i], is_wanted, what, patience))
			return false;
	return true;
}

bool launching_is_own(void)
{
	return launching_own && launching_own != &none && atomic_load(&launching_own->function);
}

/* The one thread of the child may be within a launch, and keeps its word. */
void launching_reset_after_fork(void)
{
	for (uint32_t i = 0; i < WORDS; i++) {
		atomic_store(&words[i].function, 0);
		atomic_store(&words[i].context, NULL);
		atomic_store(&words[i].thread, 0);
	}
	if (launching_own && launching_own != &none)
		atomic_store(&launching_own->thread, (int)syscall(SYS_gettid));
}

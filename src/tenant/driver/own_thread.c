/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own thread: how it begins and ends. */
#include "tenant/driver/own_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/lock.h"
#include "tenant/driver/symbols.h"

/* Longer than between two looks at the limits (poll.c): a program that works looks itself. */
#define LOOK_NS	   60000000
#define IDLE_LOOKS 17u	    /* without work, after which it ends */
#define WAIT_NS	   5000000u /* for a look */
#define LAST_LINKS 4u /* of the folder of threads: two of any folder, the first thread, this one */

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int detach_fn(pthread_t);
typedef void annotate_fn(const char *file, int line);

static own_thread_look_fn *_Atomic look_fn;
static create_fn *create; /* both are there before look_fn is */
static detach_fn *detach;
static annotate_fn *ignore_begin[2],
	*ignore_end[2]; /* of ThreadSanitizer's run time, where the program has that */
static _Atomic bool is_there, is_wanted, is_over;
static _Atomic unsigned holds;
static struct lock look_lock;	       /* held over each look */
static _Atomic uint64_t rest_until_ns; /* after one that could not be begun */

/* The library names no function of libpthread (decision 0005), and the driver has brought them. */
static void *find(const char *name)
{
	const struct libc_symbols *libc = symbols_libc();

	return libc && libc->dlsym ? libc->dlsym(RTLD_DEFAULT, name) : NULL;
}

static bool look(void)
{
	bool has_work;
	LOCK_SCOPE(&look_lock);

	/* pairs with the add in own_thread_hold(), which then waits for the lock */
	if (atomic_load(&holds))
		return true;
	/* pairs with the store in own_thread_end() */
	has_work = !atomic_load(&is_over) && atomic_load(&look_fn)();
	FAULT("own thread: looked");
	return has_work;
}

/* The first thread stays until all others have ended, and has no memory from its end on. */
static bool first_thread_has_ended(void)
{
	char byte = 0, copy;
	struct iovec from = {&byte, 1}, to = {&copy, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == ESRCH;
}

/*
 * Whether all threads of the program have ended: the process ends with this one, as nobody is left who could begin another. No file is opened for
 * that: who has one thread takes the number of one that it closes.
 */
static bool is_last(void)
{
	struct file_identity folder;

	/* In this order: the first thread may begin one before it ends. */
	return first_thread_has_ended() && file_identify_path("/proc/self/task", &folder) == 0 &&
	       folder.link_count == LAST_LINKS;
}

/* Whether the program has threads still. */
static bool look_until_idle(void)
{
	const struct timespec rest = {.tv_nsec = LOOK_NS};

	for (unsigned idle = 0; idle < IDLE_LOOKS; idle++) {
		nanosleep(&rest, NULL);
		if (look())
			idle = 0;
		if (is_last())
			return false;
	}
	return true;
}

static void annotate(annotate_fn *const fns[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (fns[i])
			fns[i](__FILE__, __LINE__);
}

static void *run(void *unused)
{
	CANCEL_PUT_OFF;

	if (detach)
		detach(pthread_self());
	prctl(PR_SET_NAME, "vgpu", 0, 0, 0);
	/* It sees our data by functions that it stands in for, and our locks not. */
	annotate(ignore_begin);
	do {
		bool is_needed = look_until_idle();

		/*
		 * pairs with the load in own_thread_note_work(): who notes work from here on begins
		 * another thread, and the look below finds what was there before
		 */
		atomic_store(&is_there, false);
		if (!is_needed)
			break;
	} while (look() && !atomic_exchange(&is_there, true));
	annotate(ignore_end);
	return unused;
}

static void begin(void)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	/* The program's signals are for its own threads. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	r = create ? create(&thread, NULL, run, NULL) : -1;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		return;
	/* relaxed: the clock decides, nothing else does */
	atomic_store_explicit(&rest_until_ns, clock_now_ns() + LOOK_NS, memory_order_relaxed);
	atomic_store(&is_there, false);
}

/* A limit of threads lasts: to try costs some us at each new work. */
static bool is_resting(void)
{
	/* relaxed: as above */
	uint64_t until_ns = atomic_load_explicit(&rest_until_ns, memory_order_relaxed);

	return until_ns && clock_now_ns() < until_ns;
}

void own_thread_set(own_thread_look_fn *fn)
{
	/*
	 * Here, without a lock: the dynamic linker has its own while constructors run, and these
	 * may wait for ours.
	 */
	create = (create_fn *)find("pthread_create");
	detach = (detach_fn *)find("pthread_detach");
	ignore_begin[0] = (annotate_fn *)find("AnnotateIgnoreReadsBegin");
	ignore_begin[1] = (annotate_fn *)find("AnnotateIgnoreWritesBegin");
	ignore_end[0] = (annotate_fn *)find("AnnotateIgnoreReadsEnd");
	ignore_end[1] = (annotate_fn *)find("AnnotateIgnoreWritesEnd");
	atomic_store(&look_fn, fn);
}

void own_thread_note_work(void)
{
	/* pairs with the store in run() */
	if (UNLIKELY(!atomic_load(&is_there)))
		atomic_store(&is_wanted, true);
}

void own_thread_begin_slowly(void)
{
	if (atomic_exchange(&is_wanted, false) && atomic_load(&look_fn) && !atomic_load(&is_over) &&
		!is_resting() && !atomic_exchange(&is_there, true))
		begin();
}

bool own_thread_is_wanted(void)
{
	return atomic_load(&is_wanted);
}

static void wait_for_look(void)
{
	if (lock_enter_within(&look_lock, WAIT_NS))
		lock_leave(&look_lock);
}

void own_thread_hold(void)
{
	atomic_fetch_add(&holds, 1);
	wait_for_look();
}

void own_thread_let_go(void)
{
	atomic_fetch_sub(&holds, 1);
}

void own_thread_end(void)
{
	atomic_store(&is_over, true);
	wait_for_look();
}

void own_thread_reset_after_fork(void)
{
	look_lock = (struct lock)LOCK_INIT;
	atomic_store(&rest_until_ns, 0);
	atomic_store(&holds, 0);
	atomic_store(&is_there, false);
	atomic_store(&is_wanted, false);
	atomic_store(&is_over, false);
}

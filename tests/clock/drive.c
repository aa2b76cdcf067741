/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive LIBRARY PROGRAM [ARGUMENT]...: runs the program, and all that it starts, on a virtual clock. Time stands while
 * any of their threads runs; when all wait, it goes on to the earliest end of a wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/clock/page.h"
#include "tests/clock/still.h"

#define NS_PER_S UINT64_C(1000000000)

/* Real time between two looks at a thread that runs. */
#define PAUSE_NS      20000
#define PAUSE_MOST_NS 1000000

#define LONG_STEP_NS  200000000
#define QUIET_LOOKS   10

#define STATUS_STILL  124 /* of the driver, when time stands still for ever */

static struct clock_page *page;

/* What the kernel says of the threads. */
static struct known {
	int fd, where_fd, tid;
	int left_tid; /* the thread whose process's first one has ended: its sleep may have, too */
	unsigned long switches;
} known[CLOCK_THREADS];

/* Where the kernel says where a thread waits, or for the end of which call; NULL: nowhere. */
static const char *where;

static unsigned long steps, looks;

/* Whose thread did not wait when it was last looked at; less than 0: all did. */
static int held_by = -1;

static uint64_t real_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* As clock_find_namespace() finds it. */
static int64_t find_host_ns(void)
{
	uint64_t monotonic_ns, before_ns, after_ns;

	do {
		before_ns = real_ns(CLOCK_BOOTTIME);
		monotonic_ns = real_ns(CLOCK_MONOTONIC);
		after_ns = real_ns(CLOCK_BOOTTIME);
	} while (after_ns - before_ns > NEAR_NS);
	return (int64_t)(monotonic_ns - before_ns);
}

/* It has no name: it is found as a file of this process, and ends with it. */
static bool make_page(void)
{
	int fd = (int)syscall(SYS_memfd_create, "test-clock", 1 /* MFD_CLOEXEC */);
	char path[64];

	if (fd < 0 || ftruncate(fd, sizeof(*page)) < 0)
		return false;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return false;
	page->now_ns = real_ns(CLOCK_MONOTONIC);
	page->realtime_ns = (int64_t)(real_ns(CLOCK_REALTIME) - page->now_ns);
	page->host_ns = find_host_ns();
	page->magic = CLOCK_MAGIC;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	return setenv(CLOCK_PAGE, path, 1) == 0;
}

static void forget(struct known *k)
{
	if (k->fd > 0)
		close(k->fd);
	if (k->where_fd > 0)
		close(k->where_fd);
	k->fd = k->where_fd = 0;
}

static int open_of(int tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* wchan: 0 of a thread that waits nowhere, or not yet. syscall: "running", once the kernel knows; an error where it is not for us to know. */
static bool says_where(const char *name, int fd)
{
	char text[8];
	ssize_t length = pread(fd, text, sizeof(text), 0);

	if (strcmp(name, "wchan") == 0)
		return length > 0 && text[0] != '0';
	return length <= 0 || text[0] != 'r';
}

/* The thread that its process began with has ended: the others have, or are about to. */
static void note_leader_gone(int pid)
{
	unsigned used = atomic_load(&page->used);

	for (unsigned i = 0; i < used; i++)
		if (owner_pid(atomic_load(&page->threads[i].owner)) == pid)
			known[i].left_tid = owner_tid(atomic_load(&page->threads[i].owner));
}

static void drop(unsigned i, uint64_t owner)
{
	struct thread_record *t = &page->threads[i];

	if (owner_tid(owner) == owner_pid(owner))
		note_leader_gone(owner_pid(owner));
	forget(&known[i]);
	/* It is nobody's before it is free: whoever takes it must not find a wait in it. */
	if (!record_pass(t, owner, owner_of(0, 1)))
		return;
	atomic_store(&t->state, THREAD_RUNS);
	atomic_store(&t->owner, 0);
}

/* The kernel's page of the thread; 0: as errno says. */
static size_t read_status(unsigned i, int tid, char *ret_text, size_t size)
{
	struct known *k = &known[i];
	ssize_t length;

	if (k->fd > 0 && k->tid != tid)
		forget(k);
	if (k->fd <= 0) {
		k->fd = open_of(tid, "status");
		k->tid = tid;
	}
	length = k->fd > 0 ? pread(k->fd, ret_text, size - 1, 0) : 0;
	ret_text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

static unsigned long number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

/*
 * A thread that is about to begin is looked for as its process, which may be stopped or killed before it does, or become another
 * program: then it has one thread, which waits itself.
 */
static int known_as(uint64_t owner)
{
	return owner_tid(owner) ? owner_tid(owner) : owner_pid(owner);
}

enum found { FOUND_RUNNING, FOUND_WAITING, FOUND_GONE };

/* Whether the thread waits, and how often it has ever left a processor. */
static enum found look(unsigned i, uint64_t owner, unsigned long *ret_switches)
{
	char text[4096];
	const char *state;

	looks++;
	errno = 0;
	if (read_status(i, known_as(owner), text, sizeof(text)) == 0)
		return errno == ENOENT || errno == ESRCH ? FOUND_GONE : FOUND_RUNNING;
	state = strstr(text, "\nState:\t");
	if (!state || strchr("ZX", state[8]))
		return FOUND_GONE;
	if (owner_tid(owner) == 0 && state[8] != 'T' && number_after(state, "\nThreads:\t") > 1)
		return FOUND_RUNNING;
	*ret_switches = number_after(state, "\nvoluntary_ctxt_switches:\t") +
			number_after(state, "\nnonvoluntary_ctxt_switches:\t");
	return strchr("STt", state[8]) ? FOUND_WAITING : FOUND_RUNNING;
}

/*
 * Whether the thread that is said to wait does. One that is on its way into a wait, or about to see that it need not,
 * is said to wait as well; where it lost its processor there, for as long as others have it. Where it waits is not
 * told then.
 */
static bool has_left(unsigned i, uint64_t owner)
{
	struct known *k = &known[i];
	int tid = known_as(owner);

	if (!where)
		return true;
	if (k->tid != tid)
		return false;
	if (k->where_fd <= 0)
		k->where_fd = open_of(tid, where);
	/* of another user's thread that is all that is known */
	return k->where_fd > 0 ? says_where(where, k->where_fd) : errno == EACCES;
}

static bool is_timed(uint32_t state)
{
	return state == THREAD_LISTENS || state == THREAD_POLLS || state == THREAD_SLEEPS;
}

/* Looks at all that may have been waked by another than the driver. */
static bool all_wait(bool is_again)
{
	unsigned used = atomic_load(&page->used);

	for (unsigned i = 0; i < used; i++) {
		uint64_t owner = atomic_load(&page->threads[i].owner);
		uint32_t state = atomic_load(&page->threads[i].state);
		unsigned long switches = 0;
		enum found found;

		held_by = (int)i;
		if (owner == 0 || (state == THREAD_SLEEPS && known[i].left_tid != owner_tid(owner)))
			continue;
		/* Last when it is looked at first, and first when it is looked at again: no switch in between is missed. */
		if (is_again && !has_left(i, owner))
			return false;
		found = look(i, owner, &switches);
		/* the end of a process is about to wake its parent */
		if (found == FOUND_GONE)
			drop(i, owner);
		if (found != FOUND_WAITING ||
			(is_again ? switches != known[i].switches : !has_left(i, owner)))
			return false;
		known[i].switches = switches;
		if (is_again && state == THREAD_RUNS)
			atomic_compare_exchange_strong(
				&page->threads[i].state, &state, THREAD_BLOCKED);
	}
	held_by = -1;
	return true;
}

/*
 * Whether all wait. A thread that waits when it is looked at, and has not run when it is looked at again, waited
 * at each moment between the two; so there was one at which all did.
 */
static bool is_quiet(void)
{
	uint32_t changes = atomic_load(&page->changes);
	unsigned used = atomic_load(&page->used);

	return all_wait(false) && all_wait(true) && !page_has_runner(page) &&
	       atomic_load(&page->changes) == changes && atomic_load(&page->used) == used;
}

static void end_wait(struct thread_record *t, uint32_t state)
{
	uint64_t owner = atomic_load(&t->owner);

	if (!atomic_compare_exchange_strong(&t->state, &state, THREAD_RUNS))
		return;
	atomic_fetch_add(&t->wake, 1);
	syscall(SYS_futex, &t->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (state == THREAD_POLLS)
		syscall(SYS_tgkill, owner_pid(owner), owner_tid(owner), CLOCK_SIGNAL);
}

/* Whether all that sleep still do: whoever was killed is about to wake its parent. */
static bool all_sleep(void)
{
	unsigned used = atomic_load(&page->used);
	unsigned long switches;

	for (unsigned i = 0; i < used; i++) {
		uint64_t owner = atomic_load(&page->threads[i].owner);
		enum found found;

		if (owner == 0 || atomic_load(&page->threads[i].state) != THREAD_SLEEPS)
			continue;
		found = look(i, owner, &switches);
		if (found == FOUND_GONE)
			drop(i, owner);
		if (found != FOUND_WAITING)
			return false;
	}
	return true;
}

/*
 * To the earliest end of a wait; false: no wait has one. A long step is taken only when nothing has run for some ms:
 * the kernel may be about to wake a parent, whose child has ended on a processor that was taken away.
 */
static bool advance(unsigned quiet_looks)
{
	unsigned used = atomic_load(&page->used);
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < used; i++) {
		struct thread_record *t = &page->threads[i];

		if (is_timed(atomic_load(&t->state)) && atomic_load(&t->deadline_ns) < next_ns)
			next_ns = atomic_load(&t->deadline_ns);
	}
	if (next_ns == UINT64_MAX || (next_ns > atomic_load(&page->now_ns) + LONG_STEP_NS &&
					     (quiet_looks < QUIET_LOOKS || !all_sleep())))
		return false;
	if (next_ns > atomic_load(&page->now_ns))
		atomic_store(&page->now_ns, next_ns);
	steps++;
	for (unsigned i = 0; i < used; i++) {
		struct thread_record *t = &page->threads[i];
		uint32_t state = atomic_load(&t->state);

		if (is_timed(state) && atomic_load(&t->deadline_ns) <= next_ns)
			end_wait(t, state);
	}
	return true;
}

/* Until nothing runs, a wait has begun since changes was read, or the real time has passed. */
static void rest(uint32_t changes, uint64_t pause_ns)
{
	struct timespec t = {.tv_nsec = (long)pause_ns};

	atomic_store(&page->is_driver_asleep, 1);
	if (page_has_runner(page))
		syscall(SYS_futex, &page->changes, FUTEX_WAIT, changes, &t, NULL, 0);
	else if (pause_ns > PAUSE_NS)
		nanosleep(&t, NULL);
	atomic_store(&page->is_driver_asleep, 0);
}

/* The child's status; less than 0: time stands still for ever. */
static int drive(pid_t child)
{
	uint64_t pause_ns = PAUSE_NS;
	unsigned quiet_looks = 0;
	int status;

	for (unsigned i = 0;; i++) {
		uint32_t changes = atomic_load(&page->changes);

		quiet_looks = is_quiet() ? quiet_looks + 1 : 0;
		if (quiet_looks && advance(quiet_looks)) {
			pause_ns = PAUSE_NS;
			quiet_looks = 0;
			changes = atomic_load(&page->changes);
		} else if (pause_ns < PAUSE_MOST_NS) {
			pause_ns *= 2;
		}
		rest(changes, pause_ns);
		if ((i % 64 == 0 || pause_ns > PAUSE_NS) &&
			waitpid(child, &status, WNOHANG) == child)
			return status;
		if (still_is_for_ever(page, steps))
			return -1;
	}
}

static bool is_told(pid_t tid, const char *name)
{
	int fd = open_of(tid, name);
	bool r = fd >= 0 && says_where(name, fd);

	if (fd >= 0)
		close(fd);
	return r;
}

/* As a child that sleeps shows. Some kernels tell the one and not the other, and in some containers nobody is told either. */
static const char *find_where(void)
{
	struct timespec pause = {.tv_nsec = 1000000};
	const char *found = NULL;
	pid_t child = fork();

	if (child < 0)
		return NULL;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			sleep(1);
	}
	for (unsigned i = 0; i < 1000 && !found; i++) {
		/* First: who sleeps now is asleep when the other one is asked. */
		bool is_asleep = is_told(child, "syscall");

		if (is_told(child, "wchan"))
			found = "wchan";
		else if (is_asleep)
			found = "syscall";
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return found;
}

static pid_t start(const char *library, char **argv)
{
	const char *others = getenv("LD_PRELOAD");
	char preload[2 * PATH_MAX];
	pid_t child = fork();

	if (child != 0)
		return child;
	atomic_store(&page->threads[0].owner, owner_of(getpid(), getpid()));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(preload, sizeof(preload), "%s%s%s", library, others ? ":" : "",
		others ? others : "");
	setenv(CLOCK_LIBRARY, library, 1);
	setenv("LD_PRELOAD", preload, 1);
	execvp(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	uint64_t from_ns, from_real_ns = real_ns(CLOCK_MONOTONIC);
	char library[PATH_MAX]; /* its whole path, for processes in other folders */
	pid_t child;
	int status;

	if (argc < 3 || !make_page()) {
		fprintf(stderr, "usage: drive LIBRARY PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	where = find_where();
	from_ns = page->now_ns;
	prctl(PR_SET_TIMERSLACK, 1);
	page->threads[0].owner = owner_of(getpid(), 0);
	page->used = 1;
	child = start(realpath(argv[1], library) ? library : argv[1], argv + 2);
	if (child < 0)
		return 2;
	status = drive(child);
	if (status < 0) {
		still_tell(page, held_by);
		still_kill_all(page);
		return STATUS_STILL;
	}
	fprintf(stderr, "virtual clock: %.1f s in %.1f s, %lu steps, %lu looks at threads\n",
		(double)(page->now_ns - from_ns) / NS_PER_S,
		(double)(real_ns(CLOCK_MONOTONIC) - from_real_ns) / NS_PER_S, steps, looks);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

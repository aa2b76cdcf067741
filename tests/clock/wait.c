/* SPDX-License-Identifier: Apache-2.0 */
/* The records of this process's threads, and their waits. */
#include "tests/clock/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So often in a row a thread may read the same time; then it is taken to wait for it to pass. */
#define READS_MOST    64
#define SPIN_FIRST_NS 1000
#define SPIN_MOST_NS  10000

/* Of Linux 5.16, which the headers may not know. */
#define FUTEX_WAITV_CALL 449
#define FUTEX_OF_32_BIT	 2
#define RETRY_NS	 200000 /* real time; where the kernel does not know it */

#define NS_PER_MS	 1000000

#define BRIEF_NS	 20000 /* a shorter sleep stands for work of the processor, and ends in time */

struct futex_wait {
	uint64_t value, address;
	uint32_t flags, reserved;
};

struct clock_page *clock_page;
int64_t clock_ahead_ns;
static uint64_t late_ns; /* by which a thread wakes up after what woke it */

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD struct thread_record *own;
OF_THREAD uint64_t last_ns;
OF_THREAD unsigned reads, spin_ns;

long system_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8)
			 : "memory");
	return x0;
#endif
}

static int own_tid(void)
{
	return (int)CALL(gettid, 0, 0, 0, 0, 0, 0);
}

static int64_t host_ns(clockid_t clock)
{
	struct timespec t;

	CALL(clock_gettime, clock, &t, 0, 0, 0, 0);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

void clock_find_namespace(void)
{
	int64_t monotonic_ns, before_ns, after_ns;

	do {
		before_ns = host_ns(CLOCK_BOOTTIME);
		monotonic_ns = host_ns(CLOCK_MONOTONIC);
		after_ns = host_ns(CLOCK_BOOTTIME);
	} while (after_ns - before_ns > NEAR_NS);
	/* to the nearest, also below zero */
	monotonic_ns -= before_ns + clock_page->host_ns;
	clock_ahead_ns = (monotonic_ns + (monotonic_ns < 0 ? -NS_PER_MS / 2 : NS_PER_MS / 2)) /
			 NS_PER_MS * NS_PER_MS;
}

static void attach(void)
{
	const char *path = getenv(CLOCK_PAGE), *late = getenv(CLOCK_LATE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct clock_page *at = MAP_FAILED;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED && at->magic == CLOCK_MAGIC)
		clock_page = at;
	if (clock_page)
		clock_find_namespace();
	late_ns = late ? 1000 * strtoul(late, NULL, 10) : 0;
}

bool clock_is_virtual(void)
{
	if (!clock_page)
		attach(); /* a constructor may read the clock before begin() is called */
	return clock_page != NULL;
}

static struct thread_record *find_record(uint64_t owner)
{
	unsigned used = atomic_load(&clock_page->used);

	for (unsigned i = 0; i < used; i++)
		if (atomic_load(&clock_page->threads[i].owner) == owner)
			return &clock_page->threads[i];
	return NULL;
}

static struct thread_record *claim_record(uint64_t owner)
{
	for (unsigned i = 0; i < CLOCK_THREADS; i++) {
		uint32_t used = atomic_load(&clock_page->used);

		/* First: a record that is taken is seen. */
		while (used <= i && !atomic_compare_exchange_weak(&clock_page->used, &used, i + 1))
			;
		if (record_pass(&clock_page->threads[i], 0, owner))
			return &clock_page->threads[i];
	}
	abort();
}

struct thread_record *clock_new_record(void)
{
	return claim_record(owner_of(getpid(), 0));
}

static struct thread_record *own_record(void)
{
	uint64_t owner;

	if (own)
		return own;
	owner = owner_of(getpid(), own_tid());
	own = find_record(owner);
	if (!own)
		own = claim_record(owner);
	return own;
}

void clock_take_record(struct thread_record *record, pid_t maker)
{
	bool is_taken = record_pass(record, owner_of(maker, 0), owner_of(getpid(), own_tid()));

	own = is_taken ? record : NULL;
	own_record();
}

void clock_begin_wait(enum thread_state state, uint64_t deadline_ns)
{
	struct clock_page *page = clock_page;
	struct thread_record *t = own_record();

	atomic_store(&t->deadline_ns, deadline_ns);
	atomic_store(&t->state, state);
	atomic_fetch_add(&page->changes, 1);
	if (atomic_load(&page->is_driver_asleep) && !page_has_runner(page) &&
		atomic_exchange(&page->is_driver_asleep, 0))
		CALL(futex, &page->changes, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* The driver has set THREAD_RUNS where it has ended the wait. */
void clock_end_wait(void)
{
	atomic_store(&own_record()->state, THREAD_RUNS);
	reads = 0;
	spin_ns = 0;
}

/* Whoever was about to begin when the process became this program never will; a child of it makes itself a record. */
static void drop_lost(void)
{
	uint64_t lost = owner_of(getpid(), 0);
	struct thread_record *t;

	while ((t = find_record(lost)))
		record_pass(t, lost, 0);
}

/* After an exec the thread has the record of before. */
static __attribute__((constructor)) void begin(void)
{
	if (!clock_is_virtual())
		return;
	drop_lost();
	clock_end_wait();
}

int clock_sleep_until(uint64_t deadline_ns)
{
	struct thread_record *t = own_record();
	uint32_t wake = atomic_load(&t->wake);
	long r = 0;

	if (deadline_ns <= atomic_load(&clock_page->now_ns))
		return 0;
	clock_begin_wait(THREAD_SLEEPS, deadline_ns);
	while (atomic_load(&t->wake) == wake && r != -EINTR)
		r = CALL(futex, &t->wake, FUTEX_WAIT, wake, NULL, NULL, 0);
	clock_end_wait();
	return r == -EINTR && atomic_load(&clock_page->now_ns) < deadline_ns ? -EINTR : 0;
}

void clock_wake_up(uint64_t slept_ns)
{
	if (late_ns && slept_ns > BRIEF_NS)
		clock_sleep_until(atomic_load(&clock_page->now_ns) + late_ns);
}

/* Until either of the two changes. */
static long wait_on_two(
	const void *word, uint32_t value, const _Atomic uint32_t *wake, uint32_t before)
{
	struct futex_wait waits[2] = {
		{.value = value, .address = (uintptr_t)word, .flags = FUTEX_OF_32_BIT},
		{.value = before, .address = (uintptr_t)wake, .flags = FUTEX_OF_32_BIT}};
	struct timespec retry = {.tv_nsec = RETRY_NS};
	long r = system_call(FUTEX_WAITV_CALL, (long)waits, 2, 0, 0, CLOCK_MONOTONIC, 0);

	if (r != -ENOSYS)
		return r;
	do
		r = CALL(futex, word, FUTEX_WAIT, value, &retry, NULL, 0);
	while (r == -ETIMEDOUT && atomic_load(wake) == before);
	return r == -ETIMEDOUT ? 1 : r;
}

long clock_wait_on(const void *word, uint32_t value, uint64_t deadline_ns)
{
	struct thread_record *t = own_record();
	uint32_t wake = atomic_load(&t->wake);
	long r;

	if (deadline_ns <= atomic_load(&clock_page->now_ns))
		return -ETIMEDOUT;
	clock_begin_wait(THREAD_LISTENS, deadline_ns);
	r = wait_on_two(word, value, &t->wake, wake);
	clock_end_wait();
	if (r == 0 || atomic_load(&t->wake) != wake)
		clock_wake_up(UINT64_MAX);
	return r != 0 && atomic_load(&t->wake) != wake ? -ETIMEDOUT : r;
}

uint64_t clock_read_ns(void)
{
	uint64_t now = atomic_load(&clock_page->now_ns);
	unsigned spin = spin_ns ? 2 * spin_ns : SPIN_FIRST_NS;

	if (now != last_ns) {
		last_ns = now;
		reads = 0;
		return now;
	}
	if (++reads <= READS_MOST)
		return now;
	spin = spin < SPIN_MOST_NS ? spin : SPIN_MOST_NS;
	clock_sleep_until(now + spin);
	spin_ns = spin; /* the next is longer, unless the thread waits meanwhile */
	return atomic_load(&clock_page->now_ns);
}

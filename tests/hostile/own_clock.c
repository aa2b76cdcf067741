/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program has a clock_gettime() and a times() of its own, by which time goes four times as fast, as libfaketime has. The library's
 * calls came to these, and a cap of 30 % was one of 120.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/times.h>
#include <time.h>

#include "tests/hostile/served.h"

#define EXPORT	 __attribute__((visibility("default")))
#define TIMES	 4
#define NS_PER_S INT64_C(1000000000)

typedef int clock_gettime_fn(clockid_t clock, struct timespec *ret);
typedef clock_t times_fn(struct tms *ret);

static _Atomic int64_t begun_ns;
static clock_t first_tick;

static int64_t read_ns(const struct timespec *t)
{
	return t->tv_sec * NS_PER_S + t->tv_nsec;
}

static clock_gettime_fn *true_clock(void)
{
	return (clock_gettime_fn *)dlsym(RTLD_NEXT, "clock_gettime");
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = true_clock()(clock, ret);
	int64_t ns;

	if (r || !begun_ns || clock != CLOCK_MONOTONIC)
		return r;
	ns = begun_ns + (read_ns(ret) - begun_ns) * TIMES;
	*ret = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
	return 0;
}

EXPORT clock_t times(struct tms *ret)
{
	clock_t tick = ((times_fn *)dlsym(RTLD_NEXT, "times"))(ret);

	return begun_ns ? first_tick + (tick - first_tick) * TIMES : tick;
}

static void attack(void)
{
	CUfunction kernel;
	struct timespec now;
	struct tms used;
	CUstream stream;

	served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	first_tick = times(&used);
	MUST(true_clock()(CLOCK_MONOTONIC, &now));
	begun_ns = read_ns(&now);
	for (;;)
		served_launch(kernel, stream, 2 * MS);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}

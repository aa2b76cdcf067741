/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal's handler makes a context of device 1 current while memory is asked for in one of device 0, and that one again when the
 * driver has given it: whoever compares which context is current before and after sees no difference.
 */
#include <signal.h>
#include <sys/time.h>

#include "tests/hostile/hostile.h"

#define BLOCKS 3

static CUcontext contexts[2];
static int next;

static void make_other_current(int number)
{
	(void)number;
	next = !next;
	cuCtxSetCurrent(contexts[next]);
}

/* The driver's call takes 50 ms, and so does each question for the current context. */
static void signal_soon(void)
{
	const struct itimerval timer = {
		.it_value = {.tv_usec = 20000}, .it_interval = {.tv_usec = 60000}};

	next = 0;
	MUST(cuCtxSetCurrent(contexts[0]));
	MUST(setitimer(ITIMER_REAL, &timer, NULL));
}

static void signal_no_more(void)
{
	const struct itimerval never = {.it_value = {.tv_usec = 0}};

	MUST(setitimer(ITIMER_REAL, &never, NULL));
}

static void attack(void)
{
	CUdeviceptr block;

	contexts[0] = hostile_begin();
	MUST(cuDevicePrimaryCtxRetain(&contexts[1], 1));
	MUST(cuCtxSetCurrent(contexts[1]));
	MUST(cuMemAlloc_v2(&block, 3 * GIB));
	MUST(signal(SIGALRM, make_other_current) == SIG_ERR);
	for (int i = 0; i < BLOCKS; i++) {
		signal_soon();
		cuMemAlloc_v2(&block, GIB);
		signal_no_more();
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .device_count = 2,
					  .slow_calls = {"cuMemAlloc_v2", "cuCtxGetCurrent"},
					  .is_slow_only = true,
					  .attack = attack});
}

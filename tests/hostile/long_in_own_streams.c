/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads whose kernels are known as short: one after the other gives its own default stream one that takes long, and no
 * more. No other thread can put an event behind it, and one that gives short work to other streams keeps the process from
 * being silent.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/served.h"

#define THREADS	   40
#define STREAMS	   16
#define KNOWN	   40 /* pieces, after which the kernel's time is known */
#define SHORT_NS   20000
#define KERNEL_NS  (500 * MS)
#define NOISE_NS   5000
#define NOISE_STEP (25 * MS)

static CUcontext context;
static CUfunction kernel, noise_kernel;
static _Atomic unsigned turn;

static void *make_noise(void *unused)
{
	CUstream streams[STREAMS];

	MUST(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < STREAMS; i++)
		MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0;; i++) {
		served_launch(noise_kernel, streams[i % STREAMS], NOISE_NS);
		served_sleep(NOISE_STEP);
	}
	return unused;
}

static void *give(void *argument)
{
	unsigned index = (unsigned)(uintptr_t)argument;

	MUST(cuCtxSetCurrent(context));
	served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	while (turn != index)
		served_sleep(MS);
	/* The last of these opens the batch in which the long one is. */
	for (unsigned i = 0; i < 5; i++)
		served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
	served_sleep(KERNEL_NS);
	turn = index + 1;
	for (;;)
		served_sleep(1000 * MS);
	return NULL;
}

static void begin(void *(*run)(void *), unsigned index)
{
	pthread_attr_t small;
	pthread_t thread;

	MUST(pthread_attr_init(&small));
	MUST(pthread_attr_setstacksize(&small, 128 << 10));
	MUST(pthread_create(&thread, &small, run, (void *)(uintptr_t)index));
}

static void attack(void)
{
	context = served_begin();
	kernel = served_kernel();
	noise_kernel = served_kernel();
	served_make_known(noise_kernel, KNOWN, NOISE_NS);
	served_make_known(kernel, KNOWN, SHORT_NS);
	begin(make_noise, 0);
	for (unsigned i = 0; i < THREADS; i++)
		begin(give, i);
	for (;;)
		served_sleep(1000 * MS);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30,
			      .settle_ms = 2000,
			      .allowance_permille = 100, /* a window has a whole kernel */
			      .attack = attack});
}

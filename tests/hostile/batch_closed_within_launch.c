/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread is in a call that gives long work, which is known as short; meanwhile another one makes the library look when what the
 * stream was given before ends: it waits for the stream, or gives more there or in another stream after a pause. When an event is recorded
 * for that, or the stream was found idle, and before that thread goes on, the long work reaches the driver, and its call
 * returns: it is behind the event, and nobody asks again. The simulated driver says when it was asked.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/hostile/within_launch.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)
#define PAUSE_NS  200000
#define STEP_NS	  10000
#define STEPS	  20 /* the other thread's call may be waiting for this one */

static CUcontext context;
static atomic_bool has_returned;
static CUfunction kernel;

/* What the library asks the driver when another thread waits, gives work to the same stream, and to another one. */
static const char *const asks[] = {"cuEventRecord", "cuStreamQuery", "cuStreamQuery"};
#define ASKS (sizeof(asks) / sizeof(asks[0]))
static __thread const char *awaited;

/* The simulated driver's calls, also of the library, come here. */
__attribute__((visibility("default"))) int hunt_at_call(const char *symbol, bool is_end);

int hunt_at_call(const char *symbol, bool is_end)
{
	if (!awaited || !is_end || strcmp(symbol, awaited) != 0)
		return 0;
	awaited = NULL;
	within_answer();
	for (unsigned i = 0; i < STEPS && !atomic_load(&has_returned); i++)
		served_sleep(STEP_NS);
	return 0;
}

static void *look_within_each(void *unused)
{
	CUstream other;

	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0;; i = (i + 1) % ASKS) {
		within_await();
		served_sleep(PAUSE_NS);
		awaited = asks[i];
		if (i == 0)
			MUST(cuStreamSynchronize(NULL));
		else
			served_launch(kernel, i == 1 ? NULL : other, SHORT_NS);
		/* Without the library nobody asks. */
		if (awaited)
			within_answer();
		awaited = NULL;
	}
	return unused;
}

static void attack(void)
{
	pthread_t thread;

	context = served_begin();
	kernel = served_kernel();
	within_begin(within_hand_over);
	MUST(pthread_create(&thread, NULL, look_within_each, NULL));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		atomic_store(&has_returned, false);
		/* The first after a pause is measured by itself. */
		served_launch(kernel, NULL, SHORT_NS);
		MUST(within_launch(kernel, NULL, KERNEL_NS));
		atomic_store(&has_returned, true);
		served_sleep(KERNEL_NS + MS);
	}
}

static const char *needs(void)
{
	return counted_is_on_card() ? "it needs the simulated driver" : NULL;
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .needs = needs, .attack = attack});
}

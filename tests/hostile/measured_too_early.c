/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread is in a call that gives long work, and meanwhile another one gives short work to the same stream, so that what
 * is measured ends before the long work has reached the driver. Then the stream idles.
 */
#include <pthread.h>

#include "tests/hostile/served.h"

#define SHORT_NS  20000
#define KERNEL_NS (40 * MS)

static CUgraphExec graph;
static CUcontext context;

static void *launch_graph(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	MUST(cuGraphLaunch(graph, NULL));
	return unused;
}

static void attack(void)
{
	CUfunction kernel;
	pthread_t thread;

	context = served_begin();
	kernel = served_kernel();
	graph = served_graph(kernel, KERNEL_NS);
	for (;;) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(pthread_create(&thread, NULL, launch_graph, NULL));
		served_sleep(5 * MS / 2);
		served_launch(kernel, NULL, SHORT_NS);
		MUST(pthread_join(thread, NULL));
		served_sleep(KERNEL_NS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .least_permille = 270,
					 .slow_call = "cuGraphLaunch",
					 .attack = attack});
}

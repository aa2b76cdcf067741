/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen processes at a time launch a new executable graph and wait for it: work that nobody knows is one piece at a time in
 * each of them, and all of their pieces run on beside others' work. None is destroyed, as the next one would have its handle,
 * and be known. A round of them takes 1.6 s, and the first one is owed, so it is judged when that is paid.
 */
#include "tests/hostile/served.h"

#define AT_ONCE	  16
#define KERNEL_NS (100 * MS)

static void run(int index)
{
	CUgraphExec graph;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;) {
		graph = served_graph(kernel, KERNEL_NS);
		MUST(cuGraphLaunch(graph, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
}

static void attack(void)
{
	hostile_processes(AT_ONCE, run);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 20000,
					 .idles_card = true,
					 .attack = attack});
}

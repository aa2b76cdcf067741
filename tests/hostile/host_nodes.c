/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph in which a function of the host runs between each two kernels. No call tells when a kernel begins or ends, and
 * the graph lasts longer than its kernels do, so less than the share is served: the graph is charged as a whole, with the
 * time in which it leaves the device to others. That is the program's own doing.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNELS	  4
#define LAUNCHES  2
#define KERNEL_NS (5 * MS)
#define HOST_NS	  (MS / 5)

static void rest(void *unused)
{
	served_sleep(HOST_NS);
}

static CUgraphExec make_graph(CUfunction kernel)
{
	CUDA_KERNEL_NODE_PARAMS_v2 work = counted_node(kernel, KERNEL_NS);
	CUDA_HOST_NODE_PARAMS host = {.fn = rest};
	CUgraphNode node, before;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	for (unsigned i = 0; i < KERNELS; i++) {
		before = node;
		MUST(cuGraphAddKernelNode_v2(&node, graph, &before, i > 0, &work));
		before = node;
		MUST(cuGraphAddHostNode(&node, graph, &before, 1, &host));
	}
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	counted_note(LAUNCHES * KERNELS * KERNEL_NS);
	return exec;
}

static void attack(void)
{
	CUgraphExec exec;
	CUstream stream;

	served_begin();
	exec = make_graph(served_kernel());
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		for (unsigned i = 0; i < LAUNCHES; i++)
			MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}

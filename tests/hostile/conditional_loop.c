/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph with a loop around one kernel of 2 ms, and of 0.5 on a card, where a window ends anywhere. The graph shows one
 * kernel, and the loop turns 30 times: how long a launch lasts shows only when it is done. On a card a second kernel counts
 * the turns and ends the loop, by a function that the driver itself has for devices, so nothing of the toolkit is needed.
 * The simulated node runs no code: there the loop turns as often as its condition says at first.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define ROUNDS	       30
#define LAUNCHES       2
#define KERNEL_NS      (2 * MS)
#define CARD_KERNEL_NS (MS / 2)

/* Of one thread. The count is back at its beginning when the loop ends. */
static const char turn_text[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n"
	".visible .global .align 4 .u32 turns = 0;\n"
	".visible .entry turn(.param .u64 condition, .param .u32 rounds)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<3>;\n"
	"\t.param .b64 handle;\n\t.param .b32 value;\n"
	"\tld.param.u64 %rd1, [condition];\n\tld.param.u32 %r1, [rounds];\n"
	"\tmov.u64 %rd2, turns;\n"
	"\tld.global.u32 %r2, [%rd2];\n"
	"\tadd.u32 %r2, %r2, 1;\n"
	"\tsetp.ge.u32 %p1, %r2, %r1;\n"
	"\tselp.u32 %r3, 0, 1, %p1;\n"
	"\tselp.u32 %r2, 0, %r2, %p1;\n"
	"\tst.global.u32 [%rd2], %r2;\n"
	"\tst.param.b64 [handle], %rd1;\n\tst.param.b32 [value], %r3;\n"
	"\tcall.uni cudaGraphSetConditional, (handle, value);\n"
	"\tret;\n}\n";

/* Behind the loop's kernel. */
static void add_turn(CUgraph body, CUgraphNode before, uint64_t condition)
{
	unsigned rounds = ROUNDS;
	void *parameters[] = {&condition, &rounds};
	CUDA_KERNEL_NODE_PARAMS_v2 turn;
	CUfunction function;
	CUgraphNode node;
	CUmodule module;

	MUST(cuModuleLoadData(&module, turn_text));
	MUST(cuModuleGetFunction(&function, module, "turn"));
	turn = hostile_node(function, NULL);
	turn.kernelParams = parameters;
	MUST(cuGraphAddKernelNode_v2(&node, body, &before, 1, &turn));
}

static CUgraphExec make_loop(CUfunction kernel)
{
	uint64_t kernel_ns = counted_is_on_card() ? CARD_KERNEL_NS : KERNEL_NS;
	CUDA_KERNEL_NODE_PARAMS_v2 work = counted_node(kernel, kernel_ns);
	CUgraphNodeParams loop = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = CU_GRAPH_COND_TYPE_WHILE, .size = 1}};
	CUgraph graph, body;
	CUgraphExec exec;
	CUgraphNode node;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuCtxGetCurrent(&loop.conditional.ctx));
	MUST(cuGraphConditionalHandleCreate(&loop.conditional.handle, graph, loop.conditional.ctx,
		ROUNDS, 1 /* assigned at each launch */));
	MUST(cuGraphAddNode(&node, graph, NULL, 0, &loop));
	body = loop.conditional.phGraph_out[0];
	MUST(cuGraphAddKernelNode_v2(&node, body, NULL, 0, &work));
	add_turn(body, node, loop.conditional.handle);
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	counted_note(LAUNCHES * ROUNDS * kernel_ns);
	return exec;
}

static void attack(void)
{
	CUgraphExec exec;
	CUstream stream;

	served_begin();
	exec = make_loop(served_kernel());
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		for (int i = 0; i < LAUNCHES; i++)
			MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 290, .attack = attack});
}

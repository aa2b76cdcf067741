/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that a kernel launches, from a graph of nothing but that kernel: as a part of it, behind it, and beside it. No
 * call of the host tells of them. The driver itself has the function for devices, so nothing of the toolkit is needed; the
 * simulated node runs no code, so there is no such way there.
 */
#include <sys/wait.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (10 * MS)

/* Streams of a device, as the runtime's header has them. */
static const uint64_t ways[] = {
	UINT64_C(0x0200000000000000), /* fire and forget: the launching graph ends with it */
	UINT64_C(0x0100000000000000), /* tail: when the launching graph has ended */
	UINT64_C(0x0300000000000000), /* fire and forget, as a sibling of the launching graph */
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static const char launcher_text[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func (.param .b32 status) cudaGraphLaunch (.param .b64 exec, .param .b64 "
	"stream);\n"
	".visible .entry launcher(.param .u64 graph, .param .u64 way, .param .u64 out)\n{\n"
	"\t.reg .b32 %r<2>;\n\t.reg .b64 %rd<4>;\n"
	"\t.param .b64 a;\n\t.param .b64 b;\n\t.param .b32 c;\n"
	"\tld.param.u64 %rd1, [graph];\n\tld.param.u64 %rd2, [way];\n"
	"\tld.param.u64 %rd3, [out];\n"
	"\tst.param.b64 [a], %rd1;\n\tst.param.b64 [b], %rd2;\n"
	"\tcall.uni (c), cudaGraphLaunch, (a, b);\n"
	"\tld.param.b32 %r1, [c];\n"
	"\tst.global.u32 [%rd3], %r1;\n"
	"\tret;\n}\n";

/* A graph of one kernel that launches the other graph, or sets "out" to why it could not. */
static CUresult make_launcher(
	CUgraphExec launched, uint64_t way, CUdeviceptr out, CUgraphExec *ret_exec)
{
	void *parameters[] = {&launched, &way, &out};
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUfunction function;
	CUgraphNode node;
	CUmodule module;
	CUgraph graph;
	CUresult result = cuModuleLoadData(&module, launcher_text);

	if (result != CUDA_SUCCESS)
		return result;
	MUST(cuModuleGetFunction(&function, module, "launcher"));
	params = hostile_node(function, NULL);
	params.kernelParams = parameters;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	return cuGraphInstantiateWithFlags(ret_exec, graph, 0);
}

static CUresult make_launched(const CUDA_KERNEL_NODE_PARAMS_v2 *params, CUgraphExec *ret_exec)
{
	CUgraphNode node;
	CUgraph graph;
	CUresult result;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, params));
	result = cuGraphInstantiateWithFlags(
		ret_exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
	return result == CUDA_SUCCESS ? cuGraphUpload(*ret_exec, NULL) : result;
}

/* Whether a kernel launches a graph here that does nothing. */
static bool is_possible(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUgraphExec launched, launcher;
	CUfunction function;
	unsigned status = 1;
	CUmodule module;
	CUdeviceptr out;

	hostile_begin();
	MUST(cuMemAlloc_v2(&out, sizeof(status)));
	MUST(cuModuleLoadData(&module, hostile_ptx(&(struct hostile_code){0}, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
	params = hostile_node(function, NULL);
	return make_launched(&params, &launched) == CUDA_SUCCESS &&
	       make_launcher(launched, ways[0], out, &launcher) == CUDA_SUCCESS &&
	       cuGraphLaunch(launcher, NULL) == CUDA_SUCCESS &&
	       cuMemcpyDtoH_v2(&status, out, sizeof(status)) == CUDA_SUCCESS && status == 0;
}

static const char *find_missing(void)
{
	int status = 1;
	pid_t pid;

	if (!counted_is_on_card())
		return "it needs a card, whose kernels do something";
	pid = fork();
	if (pid == 0)
		_exit(!is_possible());
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return NULL;
	return "it needs a device and a driver whose kernels launch graphs";
}

static void attack(void)
{
	CUgraphExec launched, exec[WAYS];
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUfunction kernel;
	CUdeviceptr out;

	served_begin();
	kernel = served_kernel();
	MUST(cuMemAlloc_v2(&out, sizeof(unsigned)));
	for (unsigned i = 0; i < WAYS; i++) {
		params = counted_node(kernel, KERNEL_NS);
		MUST(make_launched(&params, &launched));
		MUST(make_launcher(launched, ways[i], out, &exec[i]));
	}
	counted_note(WAYS * KERNEL_NS);
	for (;;) {
		for (unsigned i = 0; i < WAYS; i++)
			MUST(cuGraphLaunch(exec[i], NULL));
		MUST(cuStreamSynchronize(NULL));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .least_permille = 290,
					 .needs = find_missing,
					 .attack = attack});
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool is destroyed while a busy stream has yet to free from it, and then another stream is synchronized. The driver
 * says nothing of a pool that it was told to destroy, so a library that counts synchronizations takes the pool
 * for empty while its memory is still there.
 */
#include "tests/hostile/hostile.h"

#define BLOCK_BYTES (3 * GIB)
#define SPIN_NS	    UINT64_C(300000000)

static const char code[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry spin(\n\t.param .u64 duration_ns\n)\n{\n"
	"\t.reg .u64 %rd<3>;\n\t.reg .pred %p<1>;\n"
	"\tld.param.u64 %rd0, [duration_ns];\n\tmov.u64 %rd1, %globaltimer;\n"
	"\tadd.u64 %rd1, %rd1, %rd0;\n"
	"again:\n\tmov.u64 %rd2, %globaltimer;\n\tsetp.lt.u64 %p0, %rd2, %rd1;\n\t@%p0 bra again;\n"
	"\tret;\n}\n";

static CUfunction spin;
static CUstream busy, other;

static void try(bool is_freed_first)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	uint64_t duration_ns = SPIN_NS;
	void *parameters[] = {&duration_ns};
	CUdeviceptr from_pool, block = 0;
	CUmemoryPool pool;

	MUST(cuMemPoolCreate(&pool, &props));
	MUST(cuMemAllocFromPoolAsync(&from_pool, BLOCK_BYTES, pool, busy));
	MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, busy, parameters, NULL));
	if (is_freed_first)
		MUST(cuMemFreeAsync(from_pool, busy));
	MUST(cuMemPoolDestroy(pool));
	if (!is_freed_first)
		MUST(cuMemFreeAsync(from_pool, busy));
	MUST(cuStreamSynchronize(other));
	cuMemAlloc_v2(&block, BLOCK_BYTES);
	hostile_look();
	if (block)
		MUST(cuMemFree_v2(block));
	MUST(cuStreamSynchronize(busy));
}

static void attack(void)
{
	CUmodule module;

	hostile_begin();
	MUST(cuModuleLoadData(&module, code));
	MUST(cuModuleGetFunction(&spin, module, "spin"));
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	try(true);
	try(false);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB, .attack = attack});
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another process that is open is shown for its maker: no cover for as much in a fat binary. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/hostile/hostile.h"

#define BYTES	  0x70000000 /* of the block, and of the data */
#define PROCESSES 4

static struct {
	CUipcMemHandle handle;
	_Atomic int is_made;
} * shared;

static void make(void)
{
	CUdeviceptr block;

	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuIpcGetMemHandle(&shared->handle, block));
	shared->is_made = 1;
}

static void open_and_load(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x70000000];"};
	CUdeviceptr block;
	CUmodule module;

	while (!shared->is_made)
		usleep(1000);
	MUST(cuIpcOpenMemHandle_v2(&block, shared->handle, 1));
	cuModuleLoadData(&module, hostile_fat_binary(&code));
}

static void run(int i)
{
	hostile_begin();
	hostile_meet(
		PROCESSES); /* while one tries to load, there is no room for another's context */
	if (i == 0)
		make();
	else
		open_and_load();
	hostile_meet(2 * PROCESSES);
	hostile_look();
}

static void attack(void)
{
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared == MAP_FAILED);
	hostile_processes(PROCESSES, run);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 4 * GIB + 512 * MIB, .is_brief = true, .attack = attack});
}

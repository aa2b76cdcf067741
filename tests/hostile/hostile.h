/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that mean harm: each tries one way to hold more than its slice's quota.
 *
 *	static void attack(void)
 *	{
 *		hostile_begin();
 *		MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));	prepares the way: has to succeed
 *		cuMemAlloc_v2(&block, 4 * GIB);					the way itself: may be refused
 *		hostile_look();
 *	}
 *
 *	int main(int argc, char **argv)
 *	{
 *		return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
 *	}
 *
 * The program starts itself twice: without the library, where the way must lead above the quota, or it is none;
 * and in a slice, where it must not. It prints "name: quota N MiB, held at most M MiB (K without the library)".
 * What was held is the simulated machine's own figure, its peak included, where TENANT_DRIVER names the
 * simulated libraries; else what NVML shows for the device, looked at every 2 ms and in hostile_look().
 * TENANT_LIBRARY is the library under test.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/abi/cuda.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* The whole driver by name; a symbol that the driver does not have is missed when it is called. */
#define ENTRY(symbol, ...) extern symbol##_fn symbol;
#include "sim/cuda/entry.def"
#undef ENTRY

#define SLOW_CALLS 4

struct hostile {
	uint64_t quota_bytes;	  /* of each device */
	uint64_t allowance_bytes; /* what SECURITY.md says that may be held beyond it */
	int device_count;	  /* that the way needs; 0: one */
	const char *board;	  /* lines of a board on H200s; skipped on a card; or NULL */
	const char *setting;	  /* NAME=VALUE of the slice's environment, or NULL */
	const char *terms;	  /* another line of the share file, or NULL */
	bool is_on_overlay; /* the slice's region lies on an overlay; skipped where none can be mounted */
	const char *slow_calls
		[SLOW_CALLS];	/* of the driver, to take 50 ms on the simulated node as well */
	bool is_simulated_only; /* a card's driver does not bear what it does: skipped there */
	bool is_slow_only;	/* without them the way is closed by chance: skipped on a card */
	bool is_brief; /* SECURITY.md says that it may be held while it is loaded: counts in hostile_look() alone */
	void (*attack)(void);
};

/* The program's whole work; returns its exit status. argv is main()'s. */
int hostile_main(char **argv, const struct hostile *program);

/* Lets what is held now be looked at, and waits until it was: where it is held for less than 2 ms on a card. */
void hostile_look(void);

/*
 * The quota becomes another one while the program runs, as by vgpu set: the lines of devices in the share file. It is in force when this
 * returns. Does nothing without the library.
 */
void hostile_grant(const char *devices);

/* What only prepares the way. A failure is the test's, not the library's. */
#define MUST(call) hostile_must((int)(call), #call, __FILE__, __LINE__)
void hostile_must(int result, const char *call, const char *file, int line);

/* Initialises the driver and makes the primary context of device 0 current. */
CUcontext hostile_begin(void);
/* The same where the slice may have no room for a context: false. */
bool hostile_try_begin(void);

/* Gives the stream a kernel that takes half a second. */
void hostile_keep_busy(CUstream stream);

/* Begins a thread, and returns when that should be within a slow call of the driver's (slow_calls). The caller joins it. */
pthread_t hostile_begin_slowly(void *(*call)(void *));

/*
 * Fills the slice but for 2 MiB for each of the contexts, and then loads the image into all of them at once, by a thread each. That the
 * driver refuses one is no failure.
 */
void hostile_load_at_once(const CUcontext *contexts, unsigned count, const void *image);

/* Runs it in so many processes at once, each forked before it touches CUDA, and waits for them. */
void hostile_processes(int count, void (*run)(int index));

/* In processes or threads of one program: goes on when so many are here, or after 5 s. Once in a program. */
void hostile_meet(unsigned count);

/* PTX that real drivers compile and the simulated one reads; launched by hostile_launch(), its kernel "k" ends at once. */
struct hostile_code {
	const char *variables; /* declarations of the module, or NULL */
	unsigned frame_bytes;  /* of local memory of a thread; 0: few */
	bool has_heap;	       /* calls malloc() of the device */
	bool has_launch; /* needs what launches kernels: a card's driver wants the toolkit's library with it */
	bool has_printf;
};
#define HOSTILE_CODE_BYTES 8192
const char *hostile_ptx(const struct hostile_code *code, char text[HOSTILE_CODE_BYTES]);

/* The same in a fat binary, which the library takes for one that tells nothing; until the next call. */
const void *hostile_fat_binary(const struct hostile_code *code);

/* One thread of it in the stream; of a function, or of a kernel as the driver takes it in its place. */
CUresult hostile_launch(CUfunction function, CUstream stream);
/* One thread of a function, or of a kernel, as a node of a graph. */
CUDA_KERNEL_NODE_PARAMS_v2 hostile_node(CUfunction function, CUkernel kernel);

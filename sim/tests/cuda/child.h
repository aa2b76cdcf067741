/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the simulated driver: each runs in a child process, on a machine of its own. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "gpu/abi/cuda.h"
#include "sim/machine/inject.h"
#include "sim/machine/machine.h"

#define ENTRY(symbol, base, version, form) extern symbol##_fn symbol;
#include "sim/cuda/entry.def"

#define MiB ((size_t)1 << 20)

/*
 * TEST(name) { ... } defines a test whose body runs in a child with a fresh machine (one H200 of
 * the board "h200"), so that cuInit happens anew. A failed check ends the child and the test.
 */
#define TEST(name)                      \
	static void name##_body(void);  \
	static void name(void **state)  \
	{                               \
		(void)state;            \
		child_run(name##_body); \
	}                               \
	static void name##_body(void)

#define CHECK(condition) child_check((condition) != 0, #condition, __FILE__, __LINE__)
#define EQUAL(a, b) \
	child_check_equal((uint64_t)(a), (uint64_t)(b), #a " == " #b, __FILE__, __LINE__)
#define OK(call) EQUAL(call, CUDA_SUCCESS)
/*
 * What the machine's clock said is as it should be. A busy machine may have taken the processor away meanwhile: then the test
 * begins anew, some times at most.
 */
#define IN_TIME(condition) child_check_time((condition) != 0, #condition, __FILE__, __LINE__)
/* What was given to the device a moment ago is not done. */
#define NOT_YET(call) IN_TIME((call) == CUDA_ERROR_NOT_READY)

void child_run(void (*body)(void));
void child_check(int is_true, const char *what, const char *file, int line);
void child_check_time(int is_true, const char *what, const char *file, int line);
void child_check_equal(uint64_t a, uint64_t b, const char *what, const char *file, int line);

/* Runs the body in one more child of the test, on the same machine; returns its PID. */
int child_start(void (*body)(void));
/* Waits for it; fails, or begins anew as it does, unless it ended well (signal 0) or by this signal. */
void child_wait(int pid, int signal);

/* The machine of the test, attached without joining. */
struct machine *child_machine(void);
/* cuInit, primary context of device 0, current. */
CUcontext child_context(void);
/* What NVML shows for this process on device 0, and what is used of the device, in MiB. */
uint64_t child_shown_mib(void);
uint64_t child_used_mib(void);
/* Bytes of one kind that this process holds on device 0, in MiB. */
uint64_t child_kind_mib(enum machine_kind kind);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each function of the hook tables answers when all its arguments are 0: in a process that has
 * made no other call, and with an argument "later" in one that has a context. The program is linked
 * with the driver, so nothing has looked for a function before.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/abi/cuda.h"
#include "gpu/abi/nvml.h"

#define CALL_SECONDS 60

/* More arguments than any of them has; they are all in registers or above on the stack. */
typedef int any_fn(long, long, long, long, long, long, long, long, long, long, long, long, long);

#define CALL(symbol)
#define HOOK(symbol) any_fn symbol;
#include "gpu/cuda.def"
#define CALL(symbol)
#define HOOK(symbol) any_fn symbol;
#include "gpu/nvml.def"

static const struct {
	const char *name;
	any_fn *call;
} functions[] = {
#define CALL(symbol)
#define HOOK(symbol) {#symbol, symbol},
#include "gpu/cuda.def"
#define CALL(symbol)
#define HOOK(symbol) {#symbol, symbol},
#include "gpu/nvml.def"
};

static void begin(void)
{
	CUcontext context;

	if (cuInit(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) != 0 ||
		cuDevicePrimaryCtxRetain((long)&context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) != 0 ||
		cuCtxSetCurrent((long)context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) != 0 ||
		nvmlInit_v2(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) != NVML_SUCCESS)
		printf("there is no context\n");
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	(void)argv;
	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		printf("%s: ", functions[i].name);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			alarm(CALL_SECONDS);
			if (argc > 1)
				begin();
			printf("%d", functions[i].call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
			fflush(stdout);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		printf(" status %d\n", status);
	}
	return 0;
}

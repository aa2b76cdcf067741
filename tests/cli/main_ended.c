/* SPDX-License-Identifier: Apache-2.0 */
/* A program that holds 1 GiB, and whose main() ends by pthread_exit(): another thread goes on. It says "holding" then. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/abi/cuda.h"

cuInit_fn cuInit;
cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
cuCtxSetCurrent_fn cuCtxSetCurrent;
cuMemAlloc_v2_fn cuMemAlloc_v2;

#define BLOCK_BYTES ((size_t)1 << 30)

static void await_end_of_main(void)
{
	char path[64], text[1024] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	while (!strstr(text, ") Z ")) {
		FILE *file = fopen(path, "re");

		if (!file)
			return;
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
}

static void *hold(void *argument)
{
	CUcontext context;
	CUdeviceptr block;

	(void)argument;
	await_end_of_main();
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuMemAlloc_v2(&block, BLOCK_BYTES))
		_exit(1);
	puts("holding");
	fflush(stdout);
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, hold, NULL))
		return 1;
	pthread_exit(NULL);
}

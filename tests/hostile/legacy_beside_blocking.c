/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No harm is meant: one thread gives kernels to the legacy stream, and another to a stream that waits for that, and for which it waits.
 *
 * The driver says that the legacy stream is busy while the other one is, so each pause that a limit made was charged as its work, and made the
 * next one longer: 1 % of the device at a cap of 30.
 */
#include <pthread.h>

#include "tests/hostile/served.h"

static CUcontext context;
static CUfunction kernel;

static void give(CUstream stream)
{
	for (;;)
		served_launch(kernel, stream, 2 * MS);
}

static void *give_to_legacy(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	give(CU_STREAM_LEGACY);
	return unused;
}

static void attack(void)
{
	pthread_t thread;
	CUstream stream;

	context = served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	MUST(pthread_create(&thread, NULL, give_to_legacy, NULL));
	give(stream);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 280, .attack = attack});
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events by which the library knows how long work took have handles between those of the program's own. The program finds
 * them by asking for each one there, and records all of them in an idle stream as soon as the work is given.
 */
#include <stdint.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (40 * MS)
#define STALE	  64 /* events that the program had, whose handles the driver gives out again */
#define FOUND	  64
#define LOOKS	  20
#define STEP	  16
#define BEFORE	  0x1000
#define BEHIND	  0x4000

static CUevent found[FOUND];
static int count = STALE;

/* A card's driver may crash by what is no handle: there, those are tried that the program had. */
static void find(CUevent near)
{
	count = 0;
	for (intptr_t i = -BEFORE; i < BEHIND && count < FOUND; i += STEP) {
		CUevent event = (CUevent)((intptr_t)near + i);

		if (i && cuEventQuery(event) != CUDA_ERROR_INVALID_HANDLE)
			found[count++] = event;
	}
}

static void attack(void)
{
	CUevent near;
	CUstream busy, idle;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (int i = 0; i < STALE; i++)
		MUST(cuEventCreate(&found[i], CU_EVENT_DEFAULT));
	for (int i = 0; i < STALE; i++)
		MUST(cuEventDestroy_v2(found[i]));
	MUST(cuEventCreate(&near, CU_EVENT_DEFAULT));
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	served_launch(kernel, busy, 150000);
	MUST(cuStreamSynchronize(busy));
	for (int i = 0;; i++) {
		served_launch(kernel, busy, KERNEL_NS);
		if (i < LOOKS && !counted_is_on_card())
			find(near);
		for (int k = 0; k < count; k++)
			cuEventRecord(found[k], idle);
		MUST(cuStreamSynchronize(idle));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

static const char *needs(void)
{
	return counted_is_on_card() ? "it needs a driver that bears handles of events that are gone"
				    : NULL;
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .needs = needs, .attack = attack});
}

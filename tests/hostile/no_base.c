/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second context's stream is given work only while it waits for the first one's, so its events are never placed on the
 * clock. Its work comes after the first one's, and is charged before that: what is marked as its time would be the first one's.
 */
#include "tests/hostile/served.h"

#define KERNEL_NS (40 * MS)
#define KNOWN_NS  20000

struct place {
	CUcontext context;
	CUfunction kernel;
	CUstream stream;
};

static struct place make_place(void)
{
	struct place p = {.context = served_context(), .kernel = served_kernel()};

	MUST(cuStreamCreate(&p.stream, CU_STREAM_NON_BLOCKING));
	return p;
}

/* Work in the first, and work in the second behind it. */
static void give(const struct place *first, uint64_t first_ns, CUevent event,
	const struct place *second, uint64_t second_ns)
{
	MUST(cuCtxSetCurrent(first->context));
	served_launch(first->kernel, first->stream, first_ns);
	MUST(cuEventRecord(event, first->stream));
	MUST(cuCtxSetCurrent(second->context));
	MUST(cuStreamWaitEvent(second->stream, event, 0));
	served_launch(second->kernel, second->stream, second_ns);
}

static void attack(void)
{
	struct place early, late, first;
	CUevent event;

	MUST(cuInit(0));
	early = make_place();
	first = early;
	MUST(cuStreamCreate(&first.stream, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	late = make_place();
	/* The late one has its place among the streams before the one that it follows, and so is charged first. */
	give(&early, 2 * MS, event, &late, KNOWN_NS);
	MUST(cuStreamSynchronize(late.stream));
	MUST(cuCtxSetCurrent(first.context));
	served_launch(first.kernel, first.stream, KNOWN_NS);
	MUST(cuStreamSynchronize(first.stream));
	for (;;) {
		give(&first, KERNEL_NS, event, &late, KERNEL_NS);
		served_sleep(2 * KERNEL_NS + MS / 10);
		MUST(cuStreamSynchronize(late.stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .settle_ms = 2000, .attack = attack});
}

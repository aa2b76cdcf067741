/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice's own record says that it works without a pause while it has the time slice, and that it comes and goes while
 * others have it: its turns are to be long, and theirs short.
 */
#include <pthread.h>

#include "tests/hostile/records.h"

static void *lie(void *argument)
{
	struct turn_record *record = argument;

	for (;;) {
		bool is_own = TURN_WORD_STATE(record->face.word) == TURN_HOLD;

		record->face.steady_ns = is_own ? 1 : records_now_ns();
		served_sleep(MS / 5);
	}
	return NULL;
}

static void attack(void)
{
	struct turn_record *record = records_own();
	CUfunction kernel = served_kernel();
	pthread_t thread;

	/* What a kernel takes is known before: a thread that is late in its first launch is another way. */
	for (int i = 0; i < 40; i++) {
		served_launch(kernel, NULL, MS / 2);
		MUST(cuStreamSynchronize(NULL));
	}
	MUST(pthread_create(&thread, NULL, lie, record));
	for (;;)
		served_launch(kernel, NULL, MS / 2);
}

int main(void)
{
	return served_beside_main(attack);
}

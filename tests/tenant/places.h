/* SPDX-License-Identifier: Apache-2.0 */
/* Something is tried at each place that the tour passes (course.h). */
#pragma once

#include "tests/tenant/course.h"

/*
 * What is tried where the order says; other is a process that was there before, or NULL. False where the process
 * went its whole tour and did not pass the place so often.
 */
typedef bool places_try_fn(struct course *c, const char *fault, struct tenant *other);

/* At each place, when it is passed for the first time and once later; the action is fault_env.c's. */
void places_try_everywhere(struct node *node, const char *action, places_try_fn *try);

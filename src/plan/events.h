/* SPDX-License-Identifier: Apache-2.0 */
/* The last events of a pod. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/err.h"
#include "plan/live.h"

/* The last of them, the newest at the end: time, type, reason, source, message, count. */
int events_read(
	struct live *live, const json_t *pod, json_t **ret_events, struct err *err) MUST_CHECK;

void events_show(FILE *out, const json_t *events);

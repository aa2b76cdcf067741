/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics that the scheduler tells, in Prometheus's text form. */
#pragma once

#include "base/bits.h"
#include "scheduler/extender.h"

/* The text is the caller's to free. -ENOMEM. */
int metrics_write(const struct extender *extender, char **ret_text) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler's page shows: nodes, what of their devices is granted to whom, pods that wait, and quotas. */
#pragma once

#include <stdio.h>

#include "base/bits.h"
#include "scheduler/extender.h"
#include "web/series.h"

/* Notes what is granted now, for the lines of the last hour. */
void overview_sample(const struct extender *extender, struct series_list *series);

/* Writes what is so now, as JSON (docs/web.md). -ENOMEM. */
int overview_write(
	const struct extender *extender, struct series_list *series, FILE *out) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor's page shows: the devices of this node, the slices on them, and what has been refused. */
#pragma once

#include <stdio.h>

#include "base/bits.h"
#include "monitor/metrics.h"

struct page;

/* NULL: no memory. */
struct page *page_new(void);

/* Accepts NULL. */
void page_free(struct page *page);

/* Notes what is so now: rates and points of the hour come from it, and refusals are seen by it. */
void page_sample(struct page *page, const struct metrics_source *source);

/* Writes what is so now, and was noted before, as JSON (docs/web.md). */
void page_write(struct page *page, const struct metrics_source *source, FILE *out);
void page_write_history(const struct page *page, FILE *out);

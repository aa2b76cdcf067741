/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Created memory whose descriptors are kept track of by this process alone.
 *
 * The region has places for 1,024 shared allocations. Memory that is exported when all are taken stays charged to
 * this process, and each descriptor of it is one more reference, which ends with the last copy of the descriptor.
 */
#pragma once

#include <stdbool.h>

#include "tenant/memory/mapped.h"

/* The pin of the reference becomes the descriptor's reference. False: it is still the caller's. */
bool exports_keep(const struct mapped_reference *reference, int fd) MUST_CHECK;

/* Gives back what descriptors kept that are closed: before a refusal, and before a handle may come again. */
void exports_collect(struct device *device);

void exports_reset_after_fork(void);

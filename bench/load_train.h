/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training as bench/compute_load.c makes one: steps of many kernels of different lengths, given by a host that takes
 * its time for each. It may be so far ahead of the device as a driver lets it.
 */
#pragma once

#include <stdint.h>

#include "bench/load_report.h"

/* Until the time has come. Returns the count of launches. */
uint64_t load_train(uint64_t end_ns, struct load_spans *spans, struct load_times *waits);

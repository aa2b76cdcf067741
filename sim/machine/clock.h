/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the machine: all times in its file are times of this clock. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t machine_now_ns(void);

/* Sleeps so long, whatever signals come. */
void machine_sleep_ns(uint64_t duration_ns);

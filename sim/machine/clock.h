/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the machine: all times in its file are times of this clock. */
#pragma once

#include <stdint.h>

/*
 * CLOCK_BOOTTIME in ns, the device's own clock: a time namespace that shifts CLOCK_MONOTONIC alone brings a program into another
 * time, and the device not.
 */
uint64_t machine_now_ns(void);

/* Sleeps so long, whatever signals come. */
void machine_sleep_ns(uint64_t duration_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations on the command line. */
#pragma once

#include <stdint.h>

/* A whole number. Returns 0, or -EINVAL. */
int number_parse(const char *text, uint64_t *ret_value);

/* A duration with its unit: 5ms, 1.5s, 200us, 100ns. Returns 0, or -EINVAL. */
int number_parse_duration(const char *text, uint64_t *ret_ns);

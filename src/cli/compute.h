/* SPDX-License-Identifier: Apache-2.0 */
/* A device's compute time, for people and for programs. */
#pragma once

#include <stddef.h>

#include "node/view.h"

#define COMPUTE_TEXT_BYTES 64

/* "12.3" percent, never wider than five characters; "-" where it is not known. */
void compute_print_percent(bool is_known, double part, char *to, size_t size);

/* "30%", "30-50%", "0-50%"; "" where there is no limit. */
void compute_print_granted(const struct share_compute *c, char *to, size_t size);

/* "suspended", "evicted", "blocked", or "". */
const char *compute_state(const struct view_device *d);

/* "12.3/30% suspended", "MPS 30%"; "-" where nothing is known. */
void compute_print(const struct view_device *d, char *to, size_t size);

/* A member "compute": an object. */
void compute_print_json(const struct view_device *d);

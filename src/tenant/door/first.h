/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Being first of all libraries that have our names.
 *
 * What LD_PRELOAD names comes before what /etc/ld.so.preload names. So the environment alone can put a library there that has
 * dlsym(), as the C library, or the driver's functions, as the driver (decision 0039).
 */
#pragma once

#include <stdbool.h>

/* Whether names of other libraries lead to us. Set before main() begins. */
extern bool first_has_moved;

/* SPDX-License-Identifier: Apache-2.0 */
/* The doors dlsym() and dlvsym(). */
#pragma once

#include "shim/symbols.h"

/* The C library's own functions; NULL where they cannot be found. */
const struct libc_symbols *entry_libc(void);

/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that share memory, and what the slice pays for it. */
#pragma once

#include "tests/tenant/tenant.h"

/* What the slice holds beside so many contexts, by the driver and by the books, which agree. */
void expect_beside(struct slice *slice, unsigned contexts, uint64_t bytes);
/* The same by the books alone, where another slice bears the memory. */
void expect_books(struct slice *slice, unsigned contexts, uint64_t bytes);

/* The bytes behind "key=" in the last answer; valid until the next call. */
const char *bytes_of(const struct tenant *t, const char *key);

/* Hands a descriptor of one tenant to another. */
void hand_over(struct tenant *from, struct tenant *to, const char *fd);

/* Two processes, of one slice or of two; the first one's block of 64 MiB is imported by the second. */
void import_block(struct tenant *maker, struct tenant *user);

/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded object was bound to, changed after the dynamic linker is done. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The memory as the dynamic linker left it, and for a change also writable. Below 0 where it cannot be. Context, of both: within a visit
 * of dl_iterate_phdr().
 */
int bindings_protect(
	const struct dl_phdr_info *info, const void *from, size_t bytes, bool is_writable);

/* Writes there what otherwise stays constant. Below 0 where it cannot be. */
int bindings_write(const struct dl_phdr_info *info, void *to, const void *from, size_t bytes);

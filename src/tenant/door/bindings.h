/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded object was bound to, changed after the dynamic linker is done. */
#pragma once

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Relocations: a slot with a symbol's address, one for calls alone, an address among data, and the program's copy of a variable. */
#ifdef __aarch64__
#define BINDING_SLOT	R_AARCH64_GLOB_DAT
#define BINDING_CALL	R_AARCH64_JUMP_SLOT
#define BINDING_ADDRESS R_AARCH64_ABS64
#define BINDING_COPY	R_AARCH64_COPY
#else
#define BINDING_SLOT	R_X86_64_GLOB_DAT
#define BINDING_CALL	R_X86_64_JUMP_SLOT
#define BINDING_ADDRESS R_X86_64_64
#define BINDING_COPY	R_X86_64_COPY
#endif

/*
 * The memory as the dynamic linker left it, and for a change also writable. Below 0 where it cannot be. Context, of both: within a visit
 * of dl_iterate_phdr().
 */
int bindings_protect(
	const struct dl_phdr_info *info, const void *from, size_t bytes, bool is_writable);

/* Writes there what otherwise stays constant. Below 0 where it cannot be. */
int bindings_write(const struct dl_phdr_info *info, void *to, const void *from, size_t bytes);

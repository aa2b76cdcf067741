/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sign of life that needs no file system: a segment of System V shared memory that one process has attached.
 *
 * The kernel ends the segment when the address space that it is attached to goes: at exit, at any death, at
 * exec. Like a mapping it has no descriptor that a program could close, and a child of fork() does not
 * inherit it. Every process of the same IPC namespace can ask for it by its number. Slots use it where the file system
 * drops the lock of a mapped file (docs/decisions/0024-life-on-overlay.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* What others need to ask for it; both are 0 where there is none. */
struct token {
	uint64_t place; /* IPC namespace's inode number << 32 | the segment's number */
	uint64_t
		birth; /* when it was made, and its size, which tells it from a later one of that number */
};

enum token_state {
	TOKEN_GONE,
	TOKEN_LIVES,
	TOKEN_UNKNOWN, /* it is of another IPC namespace, or this kernel does not say */
};

/*
 * Makes a token that lives as long as this address space, or until token_drop(). *ret_page is what is attached.
 * -errno where the kernel has no room or does not allow it, -ENOENT without /proc.
 */
int token_make(struct token *ret_token, const void **ret_page) MUST_CHECK;
void token_drop(const void *page);

/* From now on children of fork() keep it as well, for as long as they do not call exec. -errno. */
int token_leave_to_children(const void *page) MUST_CHECK;

enum token_state token_look(const struct token *token);

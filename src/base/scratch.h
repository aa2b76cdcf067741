/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for one call that is too large for a stack: the program's threads may have little of it.
 *
 * Pages of their own, all zero, which the scope gives back. They are not malloc()'s, which may itself be what called us.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/fault.h"

struct scratch {
	void *at; /* NULL: there is no memory */
	size_t bytes;
	_Atomic bool *is_taken; /* of what stands ready; NULL: it is pages */
};

/* Keeps errno. */
static inline struct scratch scratch_take(size_t bytes)
{
	int saved_errno = errno;
	void *at = FAULT_OUT_OF_MEMORY() ? MAP_FAILED
					 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved_errno;
	return (struct scratch){.at = at == MAP_FAILED ? NULL : at, .bytes = bytes};
}

/*
 * What stands ready, or pages where another thread has that: for what must not fail for want of memory. In a child of a
 * fork() at such a moment it is taken for good.
 */
static inline struct scratch scratch_take_ready(void *ready, _Atomic bool *is_taken, size_t bytes)
{
	/* pairs with the release in scratch_give_back() */
	if (atomic_exchange_explicit(is_taken, true, memory_order_acquire))
		return scratch_take(bytes);
	return (struct scratch){.at = ready, .bytes = bytes, .is_taken = is_taken};
}

static inline void scratch_give_back(const struct scratch *scratch)
{
	if (scratch->is_taken)
		/* pairs with the acquire in scratch_take_ready() */
		atomic_store_explicit(scratch->is_taken, false, memory_order_release);
	else if (scratch->at)
		munmap(scratch->at, scratch->bytes);
}

/* Declares `type *name`, so many of them in such memory, to the end of the scope; NULL where there is none. */
#define SCRATCH_ARRAY(type, name, count)                                    \
	_cleanup_(scratch_give_back) const struct scratch name##_scratch_ = \
		scratch_take((count) * sizeof(type));                       \
	type *const name = name##_scratch_.at
#define SCRATCH(type, name) SCRATCH_ARRAY(type, name, 1)

/* The same with one that stands ready, which may hold anything. */
#define SCRATCH_READY(type, name)                                                    \
	static type name##_ready_;                                                   \
	static _Atomic bool name##_is_taken_;                                        \
	_cleanup_(scratch_give_back) const struct scratch name##_scratch_ =          \
		scratch_take_ready(&name##_ready_, &name##_is_taken_, sizeof(type)); \
	type *const name = name##_scratch_.at

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The swap of a driver function's address for its hook's.
 *
 * The table is filled when an address is first asked for after a library was attached. It names every hook,
 * and the hooks of cuGetProcAddress() ask it: that circle lies in the thing itself, and there is no other.
 */
#include "tenant/door/swap.h"

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/symbols.h"
#include "tenant/hooks/hook.h"

#define SWAP_PLACES 2048 /* a power of two, at least four times the rows */
_Static_assert(SWAP_PLACES >= 4 * HOOK_COUNT, "swaps must stay a short probe");

/* The hooks, for their addresses. No other file of ours can name them, so none calls them by mistake. */
#define HOOK(s) s##_fn s;
#define CALL(s)
#include "gpu/cuda.def"
#define HOOK(s) s##_fn s;
#define CALL(s)
#include "gpu/nvml.def"

struct swap {
	_Atomic(void *) real; /* NULL ends a probe; stored after hook */
	void *hook;
};
static struct swap swaps[SWAP_PLACES];
static _Atomic bool has_cuda;	    /* its addresses are in the table */
static _Atomic unsigned nvml_fills; /* as attach_nvml_fills was when NVML's were put there */
static struct lock fill_lock;

static unsigned place_of(const void *address)
{
	return (unsigned)hash_u64((uintptr_t)address) & (SWAP_PLACES - 1);
}

/* Under fill_lock; once more for the same function where fork() has cut the first time short. */
static void add(void *real, void *hook)
{
	unsigned i = place_of(real);

	if (driver_is_absent(real) || symbols_is_own(real))
		return;
	/* relaxed: the writer holds the lock */
	while (atomic_load_explicit(&swaps[i].real, memory_order_relaxed) &&
		atomic_load_explicit(&swaps[i].real, memory_order_relaxed) != real)
		i = (i + 1) & (SWAP_PLACES - 1);
	swaps[i].hook = hook;
	/* pairs with the acquire in swap_address() */
	atomic_store_explicit(&swaps[i].real, real, memory_order_release);
}

static void fill_cuda(void)
{
	CANCEL_PUT_OFF;

	LOCK_SCOPE_OWN(&fill_lock);
	if (has_cuda)
		return;
/* clang-format off */
#define HOOK(s) add((void *)attach_found.s, (void *)s);
#define CALL(s)
#include "gpu/cuda.def"
	/* clang-format on */
	/* pairs with the acquire in cuda_is_missing() */
	atomic_store_explicit(&has_cuda, true, memory_order_release);
}

static void fill_nvml(void)
{
	CANCEL_PUT_OFF;
	/* pairs with the release in fill_nvml() of driver/attach.c */
	unsigned fills = atomic_load_explicit(&attach_nvml_fills, memory_order_acquire);

	LOCK_SCOPE_OWN(&fill_lock);
	if (nvml_fills == fills)
		return;
/* clang-format off */
#define HOOK(s) add((void *)nvml.s, (void *)s);
#define CALL(s)
#include "gpu/nvml.def"
	/* clang-format on */
	/* pairs with the acquire in nvml_is_missing() */
	atomic_store_explicit(&nvml_fills, fills, memory_order_release);
}

/* Whether a library is attached and its addresses are not in the table. */
static inline bool cuda_is_missing(void)
{
	/* pairs with the release in fill_cuda(), and with that of driver/attach.c */
	return !atomic_load_explicit(&has_cuda, memory_order_acquire) &&
	       atomic_load_explicit(&attach_has_cuda, memory_order_acquire);
}

static inline bool nvml_is_missing(void)
{
	/* pairs with the release in fill_nvml(), and with that of driver/attach.c */
	return atomic_load_explicit(&nvml_fills, memory_order_acquire) !=
	       atomic_load_explicit(&attach_nvml_fills, memory_order_acquire);
}

static inline void fill(void)
{
	if (UNLIKELY(cuda_is_missing()))
		fill_cuda();
	if (UNLIKELY(nvml_is_missing()))
		fill_nvml();
}

bool swap_has(const void *hook)
{
	fill();
	for (unsigned i = 0; i < SWAP_PLACES; i++)
		/* pairs with the release in add() */
		if (atomic_load_explicit(&swaps[i].real, memory_order_acquire) &&
			swaps[i].hook == hook)
			return true;
	return false;
}

void *swap_address(void *address)
{
	if (!address)
		return NULL;
	fill();
	for (unsigned i = place_of(address);; i = (i + 1) & (SWAP_PLACES - 1)) {
		/* pairs with the release in add() */
		void *real = atomic_load_explicit(&swaps[i].real, memory_order_acquire);

		if (!real)
			return address;
		if (real == address)
			return swaps[i].hook;
	}
}

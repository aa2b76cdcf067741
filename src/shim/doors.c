/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind the doors: the real driver's table, and the swap of addresses.
 *
 * The table of a library is filled when the program has loaded it (RTLD_NOLOAD: we never bring CUDA
 * into a process that did not ask for it) and stays; the library is thereby held in memory until the
 * process ends. Filling is idempotent, so two threads that do it at once write the same.
 */
#define LOG_TOPIC LOG_DOOR
#include "shim/doors.h"

#include <dlfcn.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "shim/symbols.h"

#define CUDA_SONAME "libcuda.so.1"
#define NVML_SONAME "libnvidia-ml.so.1"

#define SWAP_PLACES 2048 /* a power of two, at least four times the rows */
_Static_assert(SWAP_PLACES >= 4 * HOOK_COUNT, "swaps must stay a short probe");

/* The hooks, for their addresses. Nobody else of ours can name them, so nobody calls them by mistake. */
#define HOOK(s) s##_fn s;
#define CALL(s)
#include "gpu/cuda.def"
#define HOOK(s) s##_fn s;
#define CALL(s)
#include "gpu/nvml.def"

struct cuda_driver cuda;
struct nvml_driver nvml;
_Atomic bool doors_has_cuda, doors_has_nvml;

struct swap {
	_Atomic(void *) real; /* NULL ends a probe; stored after hook */
	void *hook;
};
static struct swap swaps[SWAP_PLACES];
static struct lock attach_lock;

/* The linker's names for where this library begins and ends in memory. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

bool doors_is_ours(const void *address)
{
	return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

static unsigned place_of(const void *address)
{
	return (unsigned)hash_u64((uintptr_t)address) & (SWAP_PLACES - 1);
}

/* Under attach_lock; once more for the same function where fork() has cut the first time short. */
static void add_swap(void *real, void *hook)
{
	unsigned i = place_of(real);

	if (driver_is_absent(real) || doors_is_ours(real))
		return;
	/* relaxed: whoever writes holds the lock */
	while (atomic_load_explicit(&swaps[i].real, memory_order_relaxed) &&
		atomic_load_explicit(&swaps[i].real, memory_order_relaxed) != real)
		i = (i + 1) & (SWAP_PLACES - 1);
	swaps[i].hook = hook;
	/* pairs with the acquire in doors_swap() */
	atomic_store_explicit(&swaps[i].real, real, memory_order_release);
}

void *doors_swap(void *address)
{
	if (!address)
		return NULL;
	for (unsigned i = place_of(address);; i = (i + 1) & (SWAP_PLACES - 1)) {
		/* pairs with the release in add_swap() */
		void *real = atomic_load_explicit(&swaps[i].real, memory_order_acquire);

		if (!real)
			return address;
		if (real == address)
			return swaps[i].hook;
	}
}

static void *open_library(const char *name, int flags)
{
	const struct libc_symbols *libc = symbols_libc();

	return libc ? libc->dlopen(name, RTLD_LAZY | flags) : NULL;
}

/*
 * Looks everything up before the lock is taken: the C library's own lock is held by a thread that
 * runs a library's constructor, and that constructor may be what waits for ours.
 */
bool doors_attach_cuda_slowly(void)
{
	void *library = open_library(CUDA_SONAME, RTLD_NOLOAD);
	struct cuda_driver found;

	if (!library)
		return false;
	driver_load_cuda(library, symbols_libc()->dlsym, &found);
	LOCK_SCOPE_OWN(&attach_lock);
	if (!doors_has_cuda) {
		FAULT("begin: attaching");
		cuda = found;
/* clang-format off */
#define HOOK(s) add_swap((void *)cuda.s, (void *)s);
#define CALL(s)
#include "gpu/cuda.def"
		/* clang-format on */
		/* pairs with the acquire in doors_attach_cuda() */
		atomic_store_explicit(&doors_has_cuda, true, memory_order_release);
	}
	return true;
}

static bool attach_nvml(int flags)
{
	void *library = open_library(NVML_SONAME, flags);
	struct nvml_driver found;

	if (!library)
		return false;
	driver_load_nvml(library, symbols_libc()->dlsym, &found);
	LOCK_SCOPE_OWN(&attach_lock);
	if (!doors_has_nvml) {
		nvml = found;
/* clang-format off */
#define HOOK(s) add_swap((void *)nvml.s, (void *)s);
#define CALL(s)
#include "gpu/nvml.def"
		/* clang-format on */
		/* pairs with the acquire in doors_attach_nvml() */
		atomic_store_explicit(&doors_has_nvml, true, memory_order_release);
	}
	return true;
}

bool doors_attach_nvml_slowly(void)
{
	return attach_nvml(RTLD_NOLOAD);
}

bool doors_load_nvml(void)
{
	return doors_has_nvml || attach_nvml(0);
}

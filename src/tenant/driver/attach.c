/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver's tables.
 *
 * A library that is attached stays in memory until the process ends. Two threads that fill a table at once
 * write the same.
 */
#define LOG_TOPIC LOG_DOOR
#include "tenant/driver/attach.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/symbols.h"

#define CUDA_SONAME "libcuda.so.1"
#define NVML_SONAME "libnvidia-ml.so.1"

struct cuda_driver cuda;
struct nvml_driver nvml;
_Atomic bool attach_has_cuda, attach_has_nvml;

static struct lock attach_lock;

bool attach_is_cuda(const char *name)
{
	return strncmp(name, CUDA_SONAME, strlen(CUDA_SONAME)) == 0;
}

bool attach_is_nvml(const char *name)
{
	return strncmp(name, NVML_SONAME, strlen(NVML_SONAME)) == 0;
}

static void *open_library(const char *name, int flags)
{
	const struct libc_symbols *libc = symbols_libc();

	if (!libc) /* before glibc 2.34, in a process whose driver does not bring libdl */
		log_error("the C library's dlopen is not found, so no call reaches the driver",
			STR("library", name));
	return libc && !symbols_have_no_driver ? libc->dlopen(name, RTLD_LAZY | flags) : NULL;
}

/*
 * Looks everything up before the lock is taken: the C library's own lock is held by a thread that
 * runs a library's constructor, and that constructor may be what waits for ours.
 */
bool attach_cuda_slowly(void)
{
	void *library = open_library(CUDA_SONAME, RTLD_NOLOAD);
	struct cuda_driver found;

	if (!library)
		return false;
	driver_load_cuda(library, symbols_libc()->dlsym, &found);
	LOCK_SCOPE_OWN(&attach_lock);
	if (!attach_has_cuda) {
		FAULT("begin: attaching");
		cuda = found;
		/* pairs with the acquire in attach_cuda() */
		atomic_store_explicit(&attach_has_cuda, true, memory_order_release);
	}
	return true;
}

static bool fill_nvml(int flags)
{
	void *library = open_library(NVML_SONAME, flags);
	struct nvml_driver found;

	if (!library)
		return false;
	driver_load_nvml(library, symbols_libc()->dlsym, &found);
	LOCK_SCOPE_OWN(&attach_lock);
	if (!attach_has_nvml) {
		nvml = found;
		/* pairs with the acquire in attach_nvml() */
		atomic_store_explicit(&attach_has_nvml, true, memory_order_release);
	}
	return true;
}

bool attach_nvml_slowly(void)
{
	return fill_nvml(RTLD_NOLOAD);
}

bool attach_load_nvml(void)
{
	return attach_has_nvml || fill_nvml(0);
}

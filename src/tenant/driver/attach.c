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
#include "tenant/driver/own_nvml.h"
#include "tenant/driver/symbols.h"

#define CUDA_SONAME "libcuda.so.1"
#define NVML_SONAME "libnvidia-ml.so.1"

struct cuda_driver cuda, attach_found;
struct nvml_driver nvml;
_Atomic bool attach_has_cuda;
_Atomic unsigned attach_nvml_fills;

static _Atomic bool nvml_is_settled; /* looked for with the driver there */
static void *_Atomic nvml_library;   /* of which the table is */
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
		cuda = attach_found = found;
		/* pairs with the acquire in attach_cuda() */
		atomic_store_explicit(&attach_has_cuda, true, memory_order_release);
	}
	return true;
}

static CUresult refuse(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

/* A lookup like dlsym(). What tells addresses goes on to tell them, as it asks no device. */
static void *find_refusal(void *unused, const char *symbol)
{
	(void)unused;
	if (strcmp(symbol, "cuGetProcAddress") == 0)
		return (void *)attach_found.cuGetProcAddress;
	if (strcmp(symbol, "cuGetProcAddress_v2") == 0)
		return (void *)attach_found.cuGetProcAddress_v2;
	return (void *)refuse;
}

void attach_refuse_cuda(void)
{
	struct cuda_driver refusing;

	driver_load_cuda(NULL, find_refusal, &refusing);
	cuda = refusing;
}

/* Of a process without the driver nothing is measured: there it is what the process finds by name. */
static void *open_nvml(bool has_cuda)
{
	return has_cuda ? own_nvml_open((void *)attach_found.cuInit) : open_library(NVML_SONAME, 0);
}

/* Threads that see one table and then the other are of a program that has two NVMLs and asked one before it had the driver. */
static bool fill_nvml(void)
{
	/* pairs with the release in attach_cuda_slowly() */
	bool has_cuda = atomic_load_explicit(&attach_has_cuda, memory_order_acquire);
	void *library = open_nvml(has_cuda);
	struct nvml_driver found;

	if (!library)
		return false;
	/* Its names may lead to us by now (door/first.h). */
	if (library == nvml_library) {
		if (has_cuda)
			nvml_is_settled = true;
		return true;
	}
	driver_load_nvml(library, symbols_libc()->dlsym, &found);
	LOCK_SCOPE_OWN(&attach_lock);
	if (!attach_nvml_fills || (has_cuda && !nvml_is_settled && library != nvml_library)) {
		nvml = found;
		nvml_library = library;
		/* pairs with the acquire in attach_nvml() */
		atomic_fetch_add_explicit(&attach_nvml_fills, 1, memory_order_release);
	}
	if (has_cuda)
		nvml_is_settled = true;
	return true;
}

bool attach_nvml_slowly(void)
{
	return open_library(NVML_SONAME, RTLD_NOLOAD) && fill_nvml();
}

bool attach_nvml_is_early(void)
{
	return attach_has_cuda && attach_nvml_fills && !nvml_is_settled;
}

bool attach_load_nvml(void)
{
	return (attach_nvml_fills && !attach_nvml_is_early()) || fill_nvml();
}

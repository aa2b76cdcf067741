/* SPDX-License-Identifier: Apache-2.0 */
/* NVML, loaded by a program of ours for itself. */
#include "node/nvml_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Functions without which the library is too old for us. */
#define NEEDED(X)                        \
	X(nvmlInit_v2)                   \
	X(nvmlShutdown)                  \
	X(nvmlErrorString)               \
	X(nvmlDeviceGetCount_v2)         \
	X(nvmlDeviceGetHandleByIndex_v2) \
	X(nvmlDeviceGetHandleByUUID)     \
	X(nvmlDeviceGetUUID)             \
	X(nvmlDeviceGetName)

static int load(const char *path, struct nvml_library *l, struct err *err)
{
	l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle) {
		err_set(err, ENOENT, "there is no NVML: %s", dlerror());
		return NVML_LIBRARY_E_NONE;
	}
	driver_load_nvml(l->handle, dlsym, &l->driver);
	driver_load_nvml_node(l->handle, dlsym, &l->node);
#define X(symbol)              \
	if (!l->driver.symbol) \
		return err_set(err, ENOSYS, "%s has no %s; a newer driver is right", path, #symbol);
	NEEDED(X)
#undef X
	return 0;
}

int nvml_library_open(const char *path, struct nvml_library *ret_library, struct err *err)
{
	int r;

	*ret_library = (struct nvml_library){.session.driver = &ret_library->driver};
	r = load(path ? path : "libnvidia-ml.so.1", ret_library, err);
	if (r == 0 && nvml_session_begin(&ret_library->session) < 0) {
		err_set(err, ENODEV, "NVML does not start: %s",
			ret_library->driver.nvmlErrorString(ret_library->session.result));
		r = NVML_LIBRARY_E_NONE;
	}
	if (r)
		nvml_library_close(ret_library);
	return r;
}

void nvml_library_close(struct nvml_library *library)
{
	if (!library->handle)
		return;
	nvml_session_end(&library->session);
	dlclose(library->handle);
	library->handle = NULL;
}

int nvml_library_read_inventory(const char *path, struct inventory *ret_inventory, struct err *err)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};
	int r = nvml_library_open(path, &library, err);

	return r ? r : inventory_read(&library.driver, ret_inventory, err);
}

struct holders {
	struct nvml_holder *list;
	size_t count, capacity;
};

/* The process, with nothing where it is new; NULL without memory. */
static struct nvml_holder *holder_of(struct holders *all, int pid)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].pid == pid)
			return &all->list[i];
	if (all->count == all->capacity) {
		size_t capacity = all->capacity ? 2 * all->capacity : 16;
		struct nvml_holder *list = reallocarray(all->list, capacity, sizeof(*list));

		if (!list)
			return NULL;
		all->list = list;
		all->capacity = capacity;
	}
	all->list[all->count] = (struct nvml_holder){.pid = pid};
	return &all->list[all->count++];
}

/* A client of MPS may stand in both lists: it is counted by the larger figure. */
static void read_device(const struct nvml_driver *nvml, nvmlDevice_t device, struct holders *all)
{
	static const enum process_list lists[] = {LIST_COMPUTE, LIST_MPS};
	struct holders here = {.list = NULL};
	struct process_rows rows;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (nvml_list_processes(nvml, device, lists[i], &rows) < 0)
			continue;
		for (unsigned k = 0; k < rows.count; k++) {
			uint64_t bytes = rows.at[k].usedGpuMemory;
			struct nvml_holder *h = bytes && bytes != NVML_VALUE_NOT_AVAILABLE
							? holder_of(&here, (int)rows.at[k].pid)
							: NULL;

			if (h && bytes > h->bytes)
				h->bytes = bytes;
		}
	}
	for (size_t i = 0; i < here.count; i++) {
		struct nvml_holder *h = holder_of(all, here.list[i].pid);

		if (h)
			h->bytes += here.list[i].bytes;
	}
	free(here.list);
}

struct nvml_holder *nvml_library_list_holders(const struct inventory *devices, size_t *ret_count)
{
	_cleanup_(nvml_library_close) struct nvml_library library = {.handle = NULL};
	struct holders all = {.list = NULL};
	struct err ignored = ERR_NULL;
	nvmlDevice_t device;

	*ret_count = 0;
	if (nvml_library_open(NULL, &library, &ignored) != 0)
		return NULL;
	for (unsigned i = 0; i < devices->count; i++)
		if (nvml_find_device(&library.driver, devices->device[i].uuid, &device) == 0)
			read_device(&library.driver, device, &all);
	*ret_count = all.count;
	return all.list;
}

uint64_t nvml_library_read_held(const struct inventory *devices, int pid)
{
	size_t count;
	_cleanup_free_ struct nvml_holder *list = nvml_library_list_holders(devices, &count);

	for (size_t i = 0; i < count; i++)
		if (list[i].pid == pid)
			return list[i].bytes;
	return 0;
}

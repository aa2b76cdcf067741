/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this machine, as its NVML tells them. */
#include "node/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "gpu/abi/nvml.h"
#include "policy/device_name.h"

/* What we need of NVML; a library that lacks one of them is too old for us. */
#define NEEDED(X)                        \
	X(nvmlInit_v2)                   \
	X(nvmlShutdown)                  \
	X(nvmlErrorString)               \
	X(nvmlDeviceGetCount_v2)         \
	X(nvmlDeviceGetHandleByIndex_v2) \
	X(nvmlDeviceGetUUID)             \
	X(nvmlDeviceGetName)             \
	X(nvmlDeviceGetMemoryInfo)

struct nvml {
	void *handle;
#define X(symbol) symbol##_fn *symbol;
	NEEDED(X)
#undef X
	nvmlDeviceGetMigMode_fn *nvmlDeviceGetMigMode; /* NULL where it is older than MIG */
};

static int load(const char *library, struct nvml *n, struct err *err)
{
	n->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!n->handle) {
		err_set(err, ENOENT, "there is no NVML: %s", dlerror());
		return DEVICES_E_NO_NVML;
	}
#define X(symbol)                                             \
	n->symbol = (symbol##_fn *)dlsym(n->handle, #symbol); \
	if (!n->symbol)                                       \
		return err_set(                               \
			err, ENOSYS, "%s has no %s; a newer driver is right", library, #symbol);
	NEEDED(X)
#undef X
	n->nvmlDeviceGetMigMode =
		(nvmlDeviceGetMigMode_fn *)dlsym(n->handle, "nvmlDeviceGetMigMode");
	return 0;
}

static int read_one(const struct nvml *n, unsigned index, struct device *ret_device)
{
	struct device d = {.index = index};
	nvmlMemory_t memory = {0};
	unsigned mig, pending;
	nvmlDevice_t handle;
	int r = n->nvmlDeviceGetHandleByIndex_v2(index, &handle);

	if (r == NVML_SUCCESS)
		r = n->nvmlDeviceGetUUID(handle, d.uuid, sizeof(d.uuid));
	if (r == NVML_SUCCESS)
		r = n->nvmlDeviceGetName(handle, d.name, sizeof(d.name));
	/* A card in MIG mode may not tell its memory; it is only shown. */
	if (r == NVML_SUCCESS && n->nvmlDeviceGetMemoryInfo(handle, &memory) == NVML_SUCCESS)
		d.total_bytes = memory.total;
	if (r == NVML_SUCCESS && n->nvmlDeviceGetMigMode &&
		n->nvmlDeviceGetMigMode(handle, &mig, &pending) == NVML_SUCCESS)
		d.is_mig = mig == NVML_DEVICE_MIG_ENABLE;
	*ret_device = d;
	return r;
}

static int read_all(const struct nvml *n, struct devices *ret_devices, struct err *err)
{
	unsigned count;
	int r = n->nvmlDeviceGetCount_v2(&count);

	ret_devices->count = 0;
	for (unsigned i = 0; r == NVML_SUCCESS && i < count && i < DEVICES_MAX; i++) {
		r = read_one(n, i, &ret_devices->device[ret_devices->count]);
		/* One broken card, or one that is not ours to see, hides none of the others. */
		if (r == NVML_SUCCESS)
			ret_devices->count++;
		else if (r == NVML_ERROR_GPU_IS_LOST || r == NVML_ERROR_NO_PERMISSION)
			r = NVML_SUCCESS;
	}
	if (r == NVML_SUCCESS)
		return 0;
	return err_set(err, EIO, "NVML does not tell the devices: %s",
		n->nvmlErrorString((nvmlReturn_t)r));
}

int devices_read(const char *library, struct devices *ret_devices, struct err *err)
{
	struct nvml n = {.handle = NULL};
	nvmlReturn_t said;
	int r;

	r = load(library ? library : "libnvidia-ml.so.1", &n, err);
	if (r == 0) {
		said = n.nvmlInit_v2();
		if (said == NVML_SUCCESS) {
			r = read_all(&n, ret_devices, err);
			n.nvmlShutdown();
		} else {
			err_set(err, ENODEV, "NVML does not start: %s", n.nvmlErrorString(said));
			r = DEVICES_E_NO_NVML;
		}
	}
	if (n.handle)
		dlclose(n.handle);
	return r;
}

const struct device *devices_lookup(const struct devices *devices, const char *uuid)
{
	for (unsigned i = 0; i < devices->count; i++)
		if (device_name_is_same(devices->device[i].uuid, uuid))
			return &devices->device[i];
	return NULL;
}

/* "0 GPU-…, 1 GPU-…" as far as it fits. */
static void describe(const struct devices *devices, char *to, size_t size)
{
	size_t used = 0;

	to[0] = '\0';
	for (unsigned i = 0; i < devices->count && used < size; i++)
		used += (size_t)snprintf(to + used, size - used, "%s%u %s", i ? ", " : "",
			devices->device[i].index, devices->device[i].uuid);
	if (devices->count == 0)
		snprintf(to, size, "no device");
}

int devices_find(const struct devices *devices, const char *text, const struct device **ret_device,
	struct err *err)
{
	const struct device *found = NULL;
	char there[300];
	uint64_t index;
	unsigned matches = 0;
	bool is_index = parse_u64(text, DEVICES_MAX, &index) == 0;

	for (unsigned i = 0; i < devices->count && *text; i++) {
		const struct device *d = &devices->device[i];

		if (is_index ? d->index != index : strncmp(d->uuid, text, strlen(text)) != 0)
			continue;
		found = d;
		matches++;
	}
	if (matches == 1) {
		*ret_device = found;
		return 0;
	}
	describe(devices, there, sizeof(there));
	return err_set(err, ENODEV, "device '%.80s' is %s; this machine has %s", text,
		matches ? "the beginning of several UUIDs" : "not here", there);
}

const char *device_short_name(const struct device *device)
{
	static const char maker[] = "NVIDIA ";

	return strncmp(device->name, maker, sizeof(maker) - 1) ? device->name
							       : device->name + sizeof(maker) - 1;
}

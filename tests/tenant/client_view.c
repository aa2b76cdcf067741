/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for what a program sees: devices, contexts, free memory, NVML. */
#include "tests/tenant/client.h"

#include <dlfcn.h>
#include <string.h>

#include "gpu/abi/nvml.h"

static int run_init(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuInit(0);
}

static int run_count(struct client *c, char **word, unsigned count)
{
	int devices = -1;
	CUresult r = c->cu.cuDeviceGetCount(&devices);

	client_say(c, " count=%d", devices);
	return (int)r;
}

/* primary DEVICE: initialises CUDA, retains the primary context and makes it current */
static int run_primary(struct client *c, char **word, unsigned count)
{
	CUcontext context = NULL;
	CUresult r = c->cu.cuInit(0);

	if (r == CUDA_SUCCESS)
		r = c->cu.cuDeviceGet(&c->device, (int)client_size(word[1]));
	if (r == CUDA_SUCCESS)
		r = c->cu.cuDevicePrimaryCtxRetain(&context, c->device);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuCtxSetCurrent(context);
	return (int)r;
}

static int run_unprimary(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuDevicePrimaryCtxRelease_v2((CUdevice)client_size(word[1]));
}

static int run_reset(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuDevicePrimaryCtxReset_v2((CUdevice)client_size(word[1]));
}

/* newctx NAME DEVICE */
static int run_newctx(struct client *c, char **word, unsigned count)
{
	CUcontext context = NULL;
	CUresult r;

	c->device = (CUdevice)client_size(word[2]);
	r = c->cu.cuCtxCreate_v2(&context, 0, c->device);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)context);
	return (int)r;
}

static int run_endctx(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuCtxDestroy_v2((CUcontext)(uintptr_t)client_get(c, word[1]));
}

/* fillctx: contexts until one is refused */
static int run_fillctx(struct client *c, char **word, unsigned count)
{
	CUcontext context = NULL;
	uint64_t taken = 0;
	CUresult r;

	while ((r = c->cu.cuCtxCreate_v2(&context, 0, c->device)) == CUDA_SUCCESS)
		taken++;
	client_say(c, " count=%llu", (unsigned long long)taken);
	return (int)r;
}

static int run_use(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuCtxSetCurrent((CUcontext)(uintptr_t)client_get(c, word[1]));
}

static int run_info(struct client *c, char **word, unsigned count)
{
	size_t free_bytes = 0, total_bytes = 0;
	CUresult r = c->cu.cuMemGetInfo_v2(&free_bytes, &total_bytes);

	client_say(c, " free=%zu total=%zu", free_bytes, total_bytes);
	return (int)r;
}

/* infonull: either figure may be left out; the sum of the three results */
static int run_infonull(struct client *c, char **word, unsigned count)
{
	size_t free_bytes = 0, total_bytes = 0;
	int r = (int)c->cu.cuMemGetInfo_v2(NULL, &total_bytes);

	r += (int)c->cu.cuMemGetInfo_v2(&free_bytes, NULL);
	r += (int)c->cu.cuMemGetInfo_v2(NULL, NULL);
	client_say(c, " free=%zu total=%zu", free_bytes, total_bytes);
	return r;
}

static int run_totalmem(struct client *c, char **word, unsigned count)
{
	size_t bytes = 0;
	CUresult r = c->cu.cuDeviceTotalMem_v2(&bytes, (CUdevice)client_size(word[1]));

	client_say(c, " total=%zu", bytes);
	return (int)r;
}

static int run_uuid(struct client *c, char **word, unsigned count)
{
	CUuuid uuid = {{0}};
	CUresult r = c->cu.cuDeviceGetUuid_v2(&uuid, (CUdevice)client_size(word[1]));

	client_say(c, " uuid=GPU-");
	for (unsigned i = 0; i < 16; i++)
		client_say(c, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
			(unsigned char)uuid.bytes[i]);
	return (int)r;
}

/* owner SYMBOL: the library in which the function lies that the door gave */
static int run_owner(struct client *c, char **word, unsigned count)
{
	void *function = door_find(&c->cu, word[1]);
	const char *slash;
	Dl_info info;

	if (!function || !dladdr(function, &info))
		return CLIENT_FAILED;
	slash = strrchr(info.dli_fname, '/');
	client_say(c, " owner=%s", slash ? slash + 1 : info.dli_fname);
	return 0;
}

static void *nvml_symbol(const char *name)
{
	static void *library;

	if (!library)
		library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	return library ? dlsym(library, name) : NULL;
}

/* Device word[1] of an initialised NVML, or a result that is no success. */
static int nvml_device(const char *index, nvmlDevice_t *ret_device)
{
	nvmlInit_v2_fn *init = (nvmlInit_v2_fn *)nvml_symbol("nvmlInit_v2");
	nvmlDeviceGetHandleByIndex_v2_fn *get =
		(nvmlDeviceGetHandleByIndex_v2_fn *)nvml_symbol("nvmlDeviceGetHandleByIndex_v2");
	int r;

	if (!init || !get)
		return CLIENT_FAILED;
	r = (int)init();
	return r ? r : (int)get((unsigned)client_size(index), ret_device);
}

static int run_nvml(struct client *c, char **word, unsigned count)
{
	nvmlDeviceGetMemoryInfo_fn *ask =
		(nvmlDeviceGetMemoryInfo_fn *)nvml_symbol("nvmlDeviceGetMemoryInfo");
	nvmlMemory_t memory = {0};
	nvmlDevice_t device = NULL;
	int r = nvml_device(word[1], &device);

	if (r == 0)
		r = ask ? (int)ask(device, &memory) : CLIENT_FAILED;
	client_say(c, " total=%llu used=%llu free=%llu", memory.total, memory.used, memory.free);
	return r;
}

static int run_nvml2(struct client *c, char **word, unsigned count)
{
	nvmlDeviceGetMemoryInfo_v2_fn *ask =
		(nvmlDeviceGetMemoryInfo_v2_fn *)nvml_symbol("nvmlDeviceGetMemoryInfo_v2");
	nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
	nvmlDevice_t device = NULL;
	int r = nvml_device(word[1], &device);

	if (count > 2)
		memory.version = (unsigned)client_size(word[2]);
	if (r == 0)
		r = ask ? (int)ask(device, &memory) : CLIENT_FAILED;
	client_say(c, " total=%llu used=%llu free=%llu reserved=%llu", memory.total, memory.used,
		memory.free, memory.reserved);
	return r;
}

static int run_nvmlcount(struct client *c, char **word, unsigned count)
{
	nvmlDeviceGetCount_v2_fn *ask =
		(nvmlDeviceGetCount_v2_fn *)nvml_symbol("nvmlDeviceGetCount_v2");
	nvmlDevice_t device;
	unsigned devices = 0;
	int r = nvml_device("0", &device);

	if (r == 0)
		r = ask ? (int)ask(&devices) : CLIENT_FAILED;
	client_say(c, " count=%u", devices);
	return r;
}

static int run_nvmluuid(struct client *c, char **word, unsigned count)
{
	nvmlDeviceGetUUID_fn *ask = (nvmlDeviceGetUUID_fn *)nvml_symbol("nvmlDeviceGetUUID");
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
	nvmlDevice_t device;
	int r = nvml_device(word[1], &device);

	if (r == 0)
		r = ask ? (int)ask(device, uuid, sizeof(uuid)) : CLIENT_FAILED;
	client_say(c, " uuid=%s", uuid);
	return r;
}

/* procs DEVICE: every process that NVML lists there, as PID:bytes */
static int run_procs(struct client *c, char **word, unsigned count)
{
	nvmlDeviceGetComputeRunningProcesses_v3_fn *ask =
		(nvmlDeviceGetComputeRunningProcesses_v3_fn *)nvml_symbol(
			"nvmlDeviceGetComputeRunningProcesses_v3");
	static nvmlProcessInfo_t infos[128];
	unsigned processes = 128;
	nvmlDevice_t device = NULL;
	int r = nvml_device(word[1], &device);

	if (r == 0)
		r = ask ? (int)ask(device, &processes, infos) : CLIENT_FAILED;
	for (unsigned i = 0; r == 0 && i < processes; i++)
		client_say(c, " %u:%llu", infos[i].pid, infos[i].usedGpuMemory);
	return r;
}

const struct client_command client_view_commands[] = {
	{"init", 0, run_init, ""},
	{"count", 0, run_count, ""},
	{"primary", 1, run_primary, "DEVICE"},
	{"unprimary", 1, run_unprimary, "DEVICE"},
	{"reset", 1, run_reset, "DEVICE"},
	{"newctx", 2, run_newctx, "NAME DEVICE"},
	{"endctx", 1, run_endctx, "NAME"},
	{"fillctx", 0, run_fillctx, ""},
	{"use", 1, run_use, "NAME"},
	{"info", 0, run_info, ""},
	{"infonull", 0, run_infonull, ""},
	{"totalmem", 1, run_totalmem, "DEVICE"},
	{"uuid", 1, run_uuid, "DEVICE"},
	{"owner", 1, run_owner, "SYMBOL"},
	{"nvml", 1, run_nvml, "INDEX"},
	{"nvml2", 1, run_nvml2, "INDEX [VERSION]"},
	{"nvmlcount", 0, run_nvmlcount, ""},
	{"nvmluuid", 1, run_nvmluuid, "INDEX"},
	{"procs", 1, run_procs, "INDEX"},
	{0},
};

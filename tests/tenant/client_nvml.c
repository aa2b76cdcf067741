/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for what NVML tells of processes and work; and for being at work. */
#include <dlfcn.h>
#include <string.h>

#include "gpu/abi/nvml.h"
#include "tests/tenant/client.h"

#define ROWS 128

static void *symbol(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW);

	return handle ? dlsym(handle, name) : NULL;
}

/* Calls an NVML function by name; a function that is not there is CLIENT_NO_NAME. */
#define ASK(name, ...)                                                             \
	({                                                                         \
		name##_fn *ask_ = (name##_fn *)symbol("libnvidia-ml.so.1", #name); \
		ask_ ? (int)ask_(__VA_ARGS__) : CLIENT_NO_NAME;                    \
	})

static int device_at(const char *index, nvmlDevice_t *ret_device)
{
	int r = ASK(nvmlInit_v2);

	return r ? r : ASK(nvmlDeviceGetHandleByIndex_v2, (unsigned)client_size(index), ret_device);
}

/* has SYMBOL: whether dlsym() finds it in NVML */
static int run_has(struct client *c, char **word, unsigned count)
{
	client_say(c, " has=%d", symbol("libnvidia-ml.so.1", word[1]) != NULL);
	return 0;
}

typedef nvmlReturn_t list_fn(nvmlDevice_t device, unsigned *count, void *rows);

/* list FUNCTION DEVICE ROOM [null]: count and rows, as PID:bytes and instances where there are any */
static int run_list(struct client *c, char **word, unsigned count)
{
	list_fn *ask = (list_fn *)symbol("libnvidia-ml.so.1", word[1]);
	bool is_v1 = !strchr(word[1], '_');
	nvmlProcessInfo_v1_t v1[ROWS];
	nvmlProcessInfo_t v2[ROWS];
	unsigned there = (unsigned)client_size(word[3]), room = there;
	nvmlDevice_t device = NULL;
	int r = device_at(word[2], &device);

	if (r || !ask || there > ROWS)
		return r ? r : CLIENT_NO_NAME;
	r = (int)ask(device, &there, count > 4 ? NULL : is_v1 ? (void *)v1 : (void *)v2);
	client_say(c, " count=%u", there);
	for (unsigned i = 0; r == 0 && i < there && i < room; i++)
		if (is_v1)
			client_say(c, " %u:%llu", v1[i].pid, v1[i].usedGpuMemory);
		else
			client_say(c, " %u:%llu:%x:%x", v2[i].pid, v2[i].usedGpuMemory,
				v2[i].gpuInstanceId, v2[i].computeInstanceId);
	return r;
}

/* details DEVICE MODE ROOM [VERSION] */
static int run_details(struct client *c, char **word, unsigned count)
{
	nvmlProcessDetail_v1_t rows[ROWS];
	nvmlProcessDetailList_t list = {.version = nvmlProcessDetailList_v1};
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device);

	list.mode = (unsigned)client_size(word[2]);
	list.numProcArrayEntries = (unsigned)client_size(word[3]);
	list.procArray = list.numProcArrayEntries ? rows : NULL;
	if (count > 4)
		list.version = (unsigned)client_size(word[4]);
	if (r == 0)
		r = ASK(nvmlDeviceGetRunningProcessDetailList, device, &list);
	client_say(c, " count=%u", list.numProcArrayEntries);
	for (unsigned i = 0; r == 0 && i < list.numProcArrayEntries; i++)
		client_say(c, " %u:%llu", rows[i].pid, rows[i].usedGpuMemory);
	return r;
}

/* nulls DEVICE: lists without a count, a structure, or a name; the results one after the other */
static int run_nulls(struct client *c, char **word, unsigned count)
{
	char name[8];
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device);

	client_say(c, " %d", ASK(nvmlDeviceGetComputeRunningProcesses, device, NULL, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetComputeRunningProcesses_v3, device, NULL, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetGraphicsRunningProcesses_v2, NULL, NULL, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetRunningProcessDetailList, device, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetProcessUtilization, device, NULL, NULL, 0));
	client_say(c, " %d", ASK(nvmlDeviceGetProcessesUtilizationInfo, device, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetUtilizationRates, device, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetBAR1MemoryInfo, device, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetMemoryInfo, device, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetMemoryInfo_v2, device, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetAccountingPids, device, NULL, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetAccountingStats, device, 1, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetEncoderSessions, device, NULL, NULL));
	client_say(c, " %d", ASK(nvmlDeviceGetFBCSessions, device, NULL, NULL));
	client_say(c, " %d", ASK(nvmlSystemGetProcessName, 1, NULL, 0));
	client_say(c, " %d", ASK(nvmlSystemGetProcessName, 1, name, 0));
	return r;
}

/* name PID LENGTH */
static int run_name(struct client *c, char **word, unsigned count)
{
	char name[256] = "";
	int r = ASK(nvmlInit_v2);

	if (r == 0)
		r = ASK(nvmlSystemGetProcessName, (unsigned)client_size(word[1]), name,
			(unsigned)client_size(word[2]));
	client_say(c, " name=%s", name);
	return r;
}

static int run_bar1(struct client *c, char **word, unsigned count)
{
	nvmlBAR1Memory_t bar1 = {0};
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device);

	if (r == 0)
		r = ASK(nvmlDeviceGetBAR1MemoryInfo, device, &bar1);
	client_say(
		c, " total=%llu used=%llu free=%llu", bar1.bar1Total, bar1.bar1Used, bar1.bar1Free);
	return r;
}

/* busy DEVICE: how busy the device is, in percent */
static int run_busy(struct client *c, char **word, unsigned count)
{
	nvmlUtilization_t busy = {0};
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device);

	if (r == 0)
		r = ASK(nvmlDeviceGetUtilizationRates, device, &busy);
	client_say(c, " gpu=%u memory=%u", busy.gpu, busy.memory);
	return r;
}

/* samples DEVICE ROOM: PID:percent of every process that has worked, by both interfaces */
static int run_samples(struct client *c, char **word, unsigned count)
{
	nvmlProcessUtilizationSample_t samples[ROWS] = {{0}};
	nvmlProcessUtilizationInfo_v1_t rows[ROWS] = {{0}};
	nvmlProcessesUtilizationInfo_t info = {
		.version = nvmlProcessesUtilizationInfo_v1, .procUtilArray = rows};
	unsigned there = (unsigned)client_size(word[2]);
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device), r2;

	if (r)
		return r;
	info.processSamplesCount = there;
	r = ASK(nvmlDeviceGetProcessUtilization, device, samples, &there, 0);
	r2 = ASK(nvmlDeviceGetProcessesUtilizationInfo, device, &info);
	client_say(c, " count=%u info=%d:%u", there, r2, info.processSamplesCount);
	for (unsigned i = 0; i < ROWS && samples[i].pid; i++)
		client_say(c, " %u:%u", samples[i].pid, samples[i].smUtil);
	for (unsigned i = 0; i < ROWS && rows[i].pid; i++)
		client_say(c, " i%u:%u", rows[i].pid, rows[i].smUtil);
	return r;
}

/* accounts DEVICE ROOM: PIDs on the record, each with the result of asking for it */
static int run_accounts(struct client *c, char **word, unsigned count)
{
	nvmlAccountingStats_t stats = {0};
	unsigned pids[ROWS], there = (unsigned)client_size(word[2]);
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device);

	if (r == 0)
		r = ASK(nvmlDeviceGetAccountingPids, device, &there, there ? pids : NULL);
	client_say(c, " count=%u", there);
	for (unsigned i = 0; r == 0 && i < there; i++)
		client_say(c, " %u:%d", pids[i],
			ASK(nvmlDeviceGetAccountingStats, device, pids[i], &stats));
	return r;
}

/* sessions DEVICE ROOM [null]: PIDs of those of the encoder, then of those of capture */
static int run_sessions(struct client *c, char **word, unsigned count)
{
	nvmlEncoderSessionInfo_t encoders[ROWS] = {{0}};
	nvmlFBCSessionInfo_t captures[ROWS] = {{0}};
	unsigned there = (unsigned)client_size(word[2]), seen = there;
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device), r2;

	if (r || there > ROWS)
		return r ? r : CLIENT_FAILED;
	r = ASK(nvmlDeviceGetEncoderSessions, device, &there, count > 3 ? NULL : encoders);
	r2 = ASK(nvmlDeviceGetFBCSessions, device, &seen, count > 3 ? NULL : captures);
	client_say(c, " count=%u captures=%d:%u", there, r2, seen);
	for (unsigned i = 0; i < ROWS && encoders[i].pid; i++)
		client_say(c, " %u:%u", encoders[i].pid, encoders[i].sessionId);
	for (unsigned i = 0; i < ROWS && captures[i].pid; i++)
		client_say(c, " c%u:%u", captures[i].pid, captures[i].sessionId);
	return r;
}

/* account DEVICE PID */
static int run_account(struct client *c, char **word, unsigned count)
{
	nvmlAccountingStats_t stats = {0};
	nvmlDevice_t device = NULL;
	int r = device_at(word[1], &device);

	if (r == 0)
		r = ASK(nvmlDeviceGetAccountingStats, device, (unsigned)client_size(word[2]),
			&stats);
	client_say(c, " most=%llu", stats.maxMemoryUsage);
	return r;
}

/* work KERNEL: launches it once and waits; how long it lasts is the simulated node's to say */
static int run_work(struct client *c, char **word, unsigned count)
{
	static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
				   ".visible .entry work()\n{ ret; }\n";
	cuModuleLoadData_fn *load =
		(cuModuleLoadData_fn *)symbol("libcuda.so.1", "cuModuleLoadData");
	cuModuleGetFunction_fn *get =
		(cuModuleGetFunction_fn *)symbol("libcuda.so.1", "cuModuleGetFunction");
	cuLaunchKernel_fn *launch = (cuLaunchKernel_fn *)symbol("libcuda.so.1", "cuLaunchKernel");
	CUfunction function;
	CUmodule module;
	CUresult r;

	if (!load || !get || !launch)
		return CLIENT_NO_NAME;
	r = load(&module, text);
	if (r == CUDA_SUCCESS)
		r = get(&function, module, word[1]);
	if (r == CUDA_SUCCESS)
		r = launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return (int)(r == CUDA_SUCCESS ? c->cu.cuCtxSynchronize() : r);
}

/* oldinfo DEVICE: the interfaces of 32 bits, in a context of theirs; the sum of their results */
static int run_oldinfo(struct client *c, char **word, unsigned count)
{
	cuDeviceTotalMem_fn *total =
		(cuDeviceTotalMem_fn *)symbol("libcuda.so.1", "cuDeviceTotalMem");
	cuMemGetInfo_fn *info = (cuMemGetInfo_fn *)symbol("libcuda.so.1", "cuMemGetInfo");
	cuCtxCreate_fn *create = (cuCtxCreate_fn *)symbol("libcuda.so.1", "cuCtxCreate");
	CUcontext context;
	unsigned device_bytes = 0, free_bytes = 0, total_bytes = 0;
	int r;

	if (!total || !info || !create)
		return CLIENT_NO_NAME;
	r = (int)create(&context, 0, (CUdevice)client_size(word[1]));
	r += (int)total(&device_bytes, (CUdevice)client_size(word[1]));
	r += (int)info(&free_bytes, NULL);
	r += (int)info(NULL, &total_bytes);
	r += (int)info(NULL, NULL);
	client_say(c, " device=%u free=%u total=%u null=%d", device_bytes, free_bytes, total_bytes,
		(int)total(NULL, (CUdevice)client_size(word[1])));
	return r;
}

/* devices: how many there are, and of each its index and its names; and what is behind the last */
static int run_devices(struct client *c, char **word, unsigned count)
{
	unsigned first = 0, shown = 0, index = 0;
	nvmlDevice_t device = NULL;
	char uuid[96], serial[96];
	nvmlPciInfo_t pci;
	int r = ASK(nvmlInit_v2);

	if (r == 0)
		r = ASK(nvmlDeviceGetCount, &first);
	if (r == 0)
		r = ASK(nvmlDeviceGetCount_v2, &shown);
	client_say(c, " first=%u count=%u", first, shown);
	for (unsigned i = 0; r == 0 && i < shown; i++) {
		r = i % 2 ? ASK(nvmlDeviceGetHandleByIndex, i, &device)
			  : ASK(nvmlDeviceGetHandleByIndex_v2, i, &device);
		if (r == 0)
			r = ASK(nvmlDeviceGetUUID, device, uuid, sizeof(uuid));
		if (r == 0)
			r = ASK(nvmlDeviceGetSerial, device, serial, sizeof(serial));
		if (r == 0)
			r = ASK(nvmlDeviceGetPciInfo_v3, device, &pci);
		if (r == 0)
			r = ASK(nvmlDeviceGetIndex, device, &index);
		client_say(c, " [%u %s %s %s]", index, uuid, pci.busId, serial);
	}
	client_say(c, " beyond=%d", ASK(nvmlDeviceGetHandleByIndex_v2, shown, &device));
	return r;
}

/* device UUID BUS SERIAL: what the names of one find */
static int run_device(struct client *c, char **word, unsigned count)
{
	nvmlDevice_t device = NULL;
	int r = ASK(nvmlInit_v2);

	client_say(c, " %d %d %d %d", ASK(nvmlDeviceGetHandleByUUID, word[1], &device),
		ASK(nvmlDeviceGetHandleByPciBusId, word[2], &device),
		ASK(nvmlDeviceGetHandleByPciBusId_v2, word[2], &device),
		ASK(nvmlDeviceGetHandleBySerial, word[3], &device));
	return r;
}

/* endnvml: a program's own end */
static int run_endnvml(struct client *c, char **word, unsigned count)
{
	return ASK(nvmlShutdown);
}

const struct client_command client_nvml_commands[] = {
	{"endnvml", 0, run_endnvml, ""},
	{"devices", 0, run_devices, ""},
	{"device", 3, run_device, "UUID BUS SERIAL"},
	{"has", 1, run_has, "SYMBOL"},
	{"list", 3, run_list, "FUNCTION DEVICE ROOM [null]"},
	{"details", 3, run_details, "DEVICE MODE ROOM [VERSION]"},
	{"nulls", 1, run_nulls, "DEVICE"},
	{"name", 2, run_name, "PID LENGTH"},
	{"bar1", 1, run_bar1, "DEVICE"},
	{"busy", 1, run_busy, "DEVICE"},
	{"samples", 2, run_samples, "DEVICE ROOM"},
	{"accounts", 2, run_accounts, "DEVICE ROOM"},
	{"sessions", 2, run_sessions, "DEVICE ROOM [null]"},
	{"account", 2, run_account, "DEVICE PID"},
	{"work", 1, run_work, "KERNEL"},
	{"oldinfo", 1, run_oldinfo, "DEVICE"},
	{0},
};

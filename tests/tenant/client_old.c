/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client's words for functions in forms that few programs still use, or not yet. They are
 * looked up by name, because not every driver has them all.
 */
#include "tests/tenant/client.h"

static int run_oldalloc(struct client *c, char **word, unsigned count)
{
	cuMemAlloc_fn *alloc = (cuMemAlloc_fn *)client_find("cuMemAlloc");
	CUdeviceptr_v1 p = 0;
	CUresult r = alloc(&p, (unsigned)client_size(word[2]));

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], p);
	return (int)r;
}

static int run_oldpitch(struct client *c, char **word, unsigned count)
{
	cuMemAllocPitch_fn *alloc = (cuMemAllocPitch_fn *)client_find("cuMemAllocPitch");
	CUdeviceptr_v1 p = 0;
	unsigned pitch = 0;
	CUresult r = alloc(
		&p, &pitch, (unsigned)client_size(word[2]), (unsigned)client_size(word[3]), 4);

	if (r == CUDA_SUCCESS) {
		client_put(c, word[1], p);
		client_say(c, " pitch=%u", pitch);
	}
	return (int)r;
}

static int run_oldfree(struct client *c, char **word, unsigned count)
{
	cuMemFree_fn *release = (cuMemFree_fn *)client_find("cuMemFree");

	return (int)release((CUdeviceptr_v1)client_get(c, word[1]));
}

/* What is wrong about arguments is for the driver to say. */
static int run_oldwrong(struct client *c, char **word, unsigned count)
{
	cuMemAlloc_fn *alloc = (cuMemAlloc_fn *)client_find("cuMemAlloc");
	cuMemAllocPitch_fn *pitch = (cuMemAllocPitch_fn *)client_find("cuMemAllocPitch");
	CUdeviceptr_v1 p = 0;
	unsigned n = 0;

	client_say(c, " none=%d nothing=%d pitch-none=%d pitch-nothing=%d pitch-odd=%d",
		alloc(NULL, 4096), alloc(&p, 0), pitch(NULL, &n, 16, 16, 4),
		pitch(&p, &n, 0, 16, 4), pitch(&p, &n, 16, 16, 3));
	return 0;
}

/* formctx NAME DEVICE FORM: a context by the form 1, 2, 3 or 4 of cuCtxCreate */
static int run_formctx(struct client *c, char **word, unsigned count)
{
	CUcontext context = NULL;
	CUdevice device = (CUdevice)client_size(word[2]);
	CUresult r = c->cu.cuInit(0);

	if (r != CUDA_SUCCESS)
		return (int)r;
	r = CUDA_ERROR_INVALID_VALUE;
	switch (word[3][0]) {
	case '1':
		r = ((cuCtxCreate_fn *)client_find("cuCtxCreate"))(&context, 0, device);
		break;
	case '2':
		r = ((cuCtxCreate_v2_fn *)client_find("cuCtxCreate_v2"))(&context, 0, device);
		break;
	case '3':
		r = ((cuCtxCreate_v3_fn *)client_find("cuCtxCreate_v3"))(
			&context, NULL, 0, 0, device);
		break;
	case '4':
		r = ((cuCtxCreate_v4_fn *)client_find("cuCtxCreate_v4"))(&context, NULL, 0, device);
		break;
	}
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)context);
	return (int)r;
}

static int run_oldendctx(struct client *c, char **word, unsigned count)
{
	cuCtxDestroy_fn *destroy = (cuCtxDestroy_fn *)client_find("cuCtxDestroy");

	return (int)destroy((CUcontext)(uintptr_t)client_get(c, word[1]));
}

static int run_oldunprimary(struct client *c, char **word, unsigned count)
{
	cuDevicePrimaryCtxRelease_fn *release =
		(cuDevicePrimaryCtxRelease_fn *)client_find("cuDevicePrimaryCtxRelease");

	return (int)release((CUdevice)client_size(word[1]));
}

static int run_oldreset(struct client *c, char **word, unsigned count)
{
	cuDevicePrimaryCtxReset_fn *reset =
		(cuDevicePrimaryCtxReset_fn *)client_find("cuDevicePrimaryCtxReset");

	return (int)reset((CUdevice)client_size(word[1]));
}

/* syncctx: the current context, named */
static int run_syncctx(struct client *c, char **word, unsigned count)
{
	CUcontext context = NULL;
	CUresult r = c->cu.cuCtxGetCurrent(&context);

	return (int)(r == CUDA_SUCCESS ? ((cuCtxSynchronize_v2_fn *)client_find(
						 "cuCtxSynchronize_v2"))(context)
				       : r);
}

/* syncevent: waits for an event in the default stream of the door */
static int run_syncevent(struct client *c, char **word, unsigned count)
{
	CUevent event = NULL;
	CUresult r = ((cuEventCreate_fn *)client_find("cuEventCreate"))(&event, 0);

	if (r == CUDA_SUCCESS)
		r = ((cuEventRecord_fn *)client_find("cuEventRecord"))(event, NULL);
	if (r == CUDA_SUCCESS)
		r = ((cuEventSynchronize_fn *)client_find("cuEventSynchronize"))(event);
	if (r == CUDA_SUCCESS)
		r = ((cuEventDestroy_v2_fn *)client_find("cuEventDestroy_v2"))(event);
	return (int)r;
}

const struct client_command client_old_commands[] = {
	{"oldalloc", 2, run_oldalloc, "NAME SIZE"},
	{"oldpitch", 3, run_oldpitch, "NAME WIDTH HEIGHT"},
	{"oldfree", 1, run_oldfree, "NAME"},
	{"oldwrong", 0, run_oldwrong, ""},
	{"formctx", 3, run_formctx, "NAME DEVICE FORM"},
	{"oldendctx", 1, run_oldendctx, "NAME"},
	{"oldunprimary", 1, run_oldunprimary, "DEVICE"},
	{"oldreset", 1, run_oldreset, "DEVICE"},
	{"syncctx", 0, run_syncctx, ""},
	{"syncevent", 0, run_syncevent, ""},
	{0},
};

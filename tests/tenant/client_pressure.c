/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for memory under pressure: writes, attributes, busy streams, lingering. */
#include <time.h>

#include "base/clock.h"
#include "tests/tenant/client.h"

#define LINGER_STEP_NS 5000000

/* write NAME SIZE: the device writes all of it */
static int run_write(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuMemsetD8_v2(client_get(c, word[1]), 7, client_size(word[2]));
}

/* about NAME: what the driver says of the pointer */
static int run_about(struct client *c, char **word, unsigned count)
{
	CUdeviceptr p = client_get(c, word[1]);
	unsigned is_managed = 9, type = 9;
	CUresult r = c->cu.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);

	if (r == CUDA_SUCCESS)
		r = c->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	client_say(c, " managed=%u type=%u", is_managed, type);
	return (int)r;
}

static int run_ipc(struct client *c, char **word, unsigned count)
{
	CUipcMemHandle handle;

	return (int)c->cu.cuIpcGetMemHandle(&handle, client_get(c, word[1]));
}

static void rest(uint64_t ns)
{
	struct timespec pause = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&pause, NULL);
}

static void rest_on_stream(void *milliseconds)
{
	rest((uint64_t)(uintptr_t)milliseconds * 1000000);
}

/* hostwork STREAM MILLISECONDS: work that the stream does until then */
static int run_hostwork(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuLaunchHostFunc(client_stream(c, word, count, 1), rest_on_stream,
		(void *)(uintptr_t)client_size(word[2]));
}

/* linger MILLISECONDS [sync]: asks for free memory, or synchronizes, again and again */
static int run_linger(struct client *c, char **word, unsigned count)
{
	uint64_t end_ns = clock_now_ns() + client_size(word[1]) * 1000000;
	CUresult r = CUDA_SUCCESS;
	size_t free_bytes;

	while (r == CUDA_SUCCESS && clock_now_ns() < end_ns) {
		r = count > 2 ? c->cu.cuCtxSynchronize() : c->cu.cuMemGetInfo_v2(&free_bytes, NULL);
		rest(LINGER_STEP_NS);
	}
	return (int)r;
}

const struct client_command client_pressure_commands[] = {
	{"write", 2, run_write, "NAME SIZE"},
	{"about", 1, run_about, "NAME"},
	{"ipc", 1, run_ipc, "NAME"},
	{"hostwork", 2, run_hostwork, "STREAM MILLISECONDS"},
	{"linger", 1, run_linger, "MILLISECONDS [sync]"},
	{0},
};

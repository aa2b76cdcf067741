/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for calls of two threads at once. */
#include "tests/tenant/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ASIDE_WORDS 8
#define SMALL_BYTES 4096

/* A command that another thread runs, in the context of the one that told it to. */
static struct aside {
	struct client *client;
	pthread_t thread;
	CUcontext context;
	char *word[ASIDE_WORDS];
	unsigned count;
	int result;
} aside;

/* The next threads can be cancelled at any instruction. */
static bool is_hasty;

static void *run_in_thread(void *argument)
{
	struct aside *a = argument;

	if (is_hasty)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	a->result = (int)a->client->cu.cuCtxSetCurrent(a->context);
	if (a->result == CUDA_SUCCESS)
		a->result = client_run(a->client, a->word, a->count);
	return NULL;
}

/* aside COMMAND...: does not wait for it */
static int run_aside(struct client *c, char **word, unsigned count)
{
	CUresult r = c->cu.cuCtxGetCurrent(&aside.context);

	aside.client = c;
	aside.count = 0;
	for (unsigned i = 1; i < count && i <= ASIDE_WORDS; i++)
		aside.word[aside.count++] = strdup(word[i]);
	if (r == CUDA_SUCCESS && pthread_create(&aside.thread, NULL, run_in_thread, &aside) != 0)
		return CLIENT_FAILED;
	return (int)r;
}

/* joined: what came of it */
static int run_joined(struct client *c, char **word, unsigned count)
{
	pthread_join(aside.thread, NULL);
	for (unsigned i = 0; i < aside.count; i++)
		free(aside.word[i]);
	return aside.result;
}

/* cancel: the thread, wherever it is */
static int run_cancel(struct client *c, char **word, unsigned count)
{
	return pthread_cancel(aside.thread) == 0 ? 0 : CLIENT_FAILED;
}

static int run_hasty(struct client *c, char **word, unsigned count)
{
	is_hasty = true;
	return 0;
}

struct race {
	struct client *client;
	size_t bytes;
	_Atomic bool is_begun, is_over;
};

/* Retains the primary context and allocates in it, for as long as the other thread resets it. */
static void *retain_and_allocate(void *argument)
{
	struct race *race = argument;
	const struct door *cu = &race->client->cu;
	CUcontext context;
	CUdeviceptr p;

	while (!race->is_begun)
		;
	do {
		if (cu->cuDevicePrimaryCtxRetain(&context, race->client->device) == CUDA_SUCCESS &&
			cu->cuCtxSetCurrent(context) == CUDA_SUCCESS)
			cu->cuMemAlloc_v2(&p, race->bytes);
	} while (!race->is_over);
	return NULL;
}

/* resetrace COUNT SIZE: resets a primary context with so many allocations beside a thread that uses it anew */
static int run_resetrace(struct client *c, char **word, unsigned count)
{
	struct race race = {.client = c, .bytes = client_size(word[2])};
	CUresult r = CUDA_SUCCESS;
	CUcontext context;
	pthread_t thread;
	CUdeviceptr p;

	for (uint64_t i = client_size(word[1]); i > 0 && r == CUDA_SUCCESS; i--)
		r = c->cu.cuMemAlloc_v2(&p, SMALL_BYTES);
	if (r != CUDA_SUCCESS || pthread_create(&thread, NULL, retain_and_allocate, &race) != 0)
		return r == CUDA_SUCCESS ? CLIENT_FAILED : (int)r;
	race.is_begun = true;
	r = c->cu.cuDevicePrimaryCtxReset_v2(c->device);
	race.is_over = true;
	pthread_join(thread, NULL);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuDevicePrimaryCtxRetain(&context, c->device);
	return (int)(r == CUDA_SUCCESS ? c->cu.cuCtxSetCurrent(context) : r);
}

const struct client_command client_race_commands[] = {
	{"aside", 1, run_aside, "COMMAND..."},
	{"cancel", 0, run_cancel, ""},
	{"hasty", 0, run_hasty, ""},
	{"joined", 0, run_joined, ""},
	{"resetrace", 2, run_resetrace, "COUNT SIZE"},
	{0},
};

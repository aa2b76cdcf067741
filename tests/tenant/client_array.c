/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client's words for arrays.
 *
 * A shape is W, WxH or WxHxD of floats, or bytes with a unit (1g: two dimensions of four floats), and
 * behind commas: c1, c2 or c4 channels, layered, cube, gather, surface, sparse, deferred, u8, and mN
 * for a mipmapped array of N levels. So "array a 200x200x200", "fillarray 1g,m1 40".
 */
#include "tests/tenant/client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MOST 16

struct shape {
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	unsigned int levels; /* 0: no mipmapped array */
};

/* A name's value, and of what fillarray took: the handle, its lowest bit set for a mipmapped one. */
static uint64_t *filled;
static size_t filled_count, filled_room;

static void read_option(struct shape *shape, const char *word)
{
	static const struct {
		const char *name;
		unsigned int flag;
	} flags[] = {{"layered", CUDA_ARRAY3D_LAYERED}, {"cube", CUDA_ARRAY3D_CUBEMAP},
		{"gather", CUDA_ARRAY3D_TEXTURE_GATHER}, {"surface", CUDA_ARRAY3D_SURFACE_LDST},
		{"sparse", CUDA_ARRAY3D_SPARSE}, {"deferred", CUDA_ARRAY3D_DEFERRED_MAPPING}};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(word, flags[i].name) == 0)
			shape->descriptor.Flags |= flags[i].flag;
	if (strcmp(word, "u8") == 0)
		shape->descriptor.Format = CU_AD_FORMAT_UNSIGNED_INT8;
	else if (word[0] == 'c' && word[1] >= '0' && word[1] <= '9')
		shape->descriptor.NumChannels = (unsigned int)strtoul(word + 1, NULL, 10);
	else if (word[0] == 'm')
		shape->levels = (unsigned int)strtoul(word + 1, NULL, 10);
}

static struct shape read_shape(const char *text)
{
	struct shape shape = {.descriptor = {.Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1}};
	size_t *const sizes[] = {
		&shape.descriptor.Width, &shape.descriptor.Height, &shape.descriptor.Depth};
	char words[128], *rest = NULL, *first;

	strncpy(words, text, sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	first = strtok_r(words, ",", &rest);
	for (char *o = strtok_r(NULL, ",", &rest); o; o = strtok_r(NULL, ",", &rest))
		read_option(&shape, o);
	if (!first)
		return shape;
	if (strpbrk(first, "kmg")) {
		/* Rows of 128 KiB: 8192 elements of 16 bytes. */
		shape.descriptor.NumChannels = 4;
		shape.descriptor.Width = 8192;
		shape.descriptor.Height = client_size(first) >> 17;
		return shape;
	}
	for (int i = 0; i < 3 && *first; i++) {
		*sizes[i] = strtoull(first, &first, 0);
		first += *first == 'x';
	}
	return shape;
}

static CUresult make(struct client *c, const struct shape *shape, uint64_t *ret_value)
{
	const CUDA_ARRAY3D_DESCRIPTOR *d = &shape->descriptor;
	CUmipmappedArray mipmap = NULL;
	CUarray array = NULL;
	CUresult r;

	if (shape->levels > 0) {
		r = c->cu.cuMipmappedArrayCreate(&mipmap, d, shape->levels);
		*ret_value = (uintptr_t)mipmap | 1;
		return r;
	}
	if (d->Depth == 0 && d->Flags == 0) {
		CUDA_ARRAY_DESCRIPTOR flat = {d->Width, d->Height, d->Format, d->NumChannels};

		r = c->cu.cuArrayCreate_v2(&array, &flat);
	} else {
		r = c->cu.cuArray3DCreate_v2(&array, d);
	}
	*ret_value = (uintptr_t)array;
	return r;
}

static CUresult destroy(struct client *c, uint64_t value)
{
	uint64_t handle = value & ~UINT64_C(1);

	return value & 1 ? c->cu.cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)handle)
			 : c->cu.cuArrayDestroy((CUarray)(uintptr_t)handle);
}

static int run_array(struct client *c, char **word, unsigned count)
{
	struct shape shape = read_shape(word[2]);
	uint64_t value;
	CUresult r = make(c, &shape, &value);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], value);
	return (int)r;
}

struct elsewhere {
	struct client *client;
	CUcontext context;
	uint64_t value;
	struct shape shape;
	unsigned rounds;
	CUresult result;
};

static void *destroy_elsewhere(void *data)
{
	struct elsewhere *e = data;

	e->result = e->client->cu.cuCtxSetCurrent(e->context);
	if (e->result == CUDA_SUCCESS)
		e->result = destroy(e->client, e->value);
	return NULL;
}

/* endarray NAME [thread]: in a thread of its own */
static int run_endarray(struct client *c, char **word, unsigned count)
{
	struct elsewhere e = {.client = c, .value = client_get(c, word[1])};
	pthread_t thread;

	if (count < 3)
		return (int)destroy(c, e.value);
	if (c->cu.cuCtxGetCurrent(&e.context) != CUDA_SUCCESS ||
		pthread_create(&thread, NULL, destroy_elsewhere, &e) != 0)
		return CLIENT_FAILED;
	pthread_join(thread, NULL);
	return (int)e.result;
}

static void keep(uint64_t value)
{
	if (filled_count == filled_room) {
		filled_room = filled_room ? filled_room * 2 : 1024;
		filled = realloc(filled, filled_room * sizeof(*filled));
		if (!filled)
			exit(67);
	}
	filled[filled_count++] = value;
}

/* fillarray SHAPE [MOST]: arrays until one is refused, at most MOST */
static int run_fillarray(struct client *c, char **word, unsigned count)
{
	uint64_t most = count > 2 ? client_size(word[2]) : UINT64_MAX, made = 0, value;
	struct shape shape = read_shape(word[1]);
	CUresult r = CUDA_SUCCESS;

	while (made < most) {
		r = make(c, &shape, &value);
		if (r != CUDA_SUCCESS)
			break;
		keep(value);
		made++;
	}
	client_say(c, " count=%llu", (unsigned long long)made);
	return (int)r;
}

/* droparrays [EVERY]: destroys every N-th of what fillarray made, or all of it */
static int run_droparrays(struct client *c, char **word, unsigned count)
{
	size_t step = count > 1 ? client_size(word[1]) : 1, left = 0;
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < filled_count; i++) {
		if (i % step)
			filled[left++] = filled[i];
		else if (destroy(c, filled[i]) != CUDA_SUCCESS)
			r = CUDA_ERROR_INVALID_VALUE;
	}
	filled_count = left;
	return (int)r;
}

/* forgetarrays: what fillarray made went with its context */
static int run_forgetarrays(struct client *c, char **word, unsigned count)
{
	filled_count = 0;
	return 0;
}

static int run_level(struct client *c, char **word, unsigned count)
{
	CUmipmappedArray mipmap =
		(CUmipmappedArray)(uintptr_t)(client_get(c, word[2]) & ~UINT64_C(1));
	CUarray array = NULL;
	CUresult r =
		c->cu.cuMipmappedArrayGetLevel(&array, mipmap, (unsigned int)client_size(word[3]));

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)array);
	return (int)r;
}

static CUarrayMapInfo tile(struct client *c, char **word)
{
	CUarrayMapInfo info = {
		.deviceBitMask = 1u << c->device, .memOperationType = CU_MEM_OPERATION_TYPE_UNMAP};

	info.resource.array = (CUarray)(uintptr_t)client_get(c, word[1]);
	info.subresource.sparseLevel.offsetX = (unsigned int)client_size(word[2]) * 128;
	info.subresource.sparseLevel.extentWidth = 128;
	info.subresource.sparseLevel.extentHeight = 128;
	info.subresource.sparseLevel.extentDepth = 1;
	return info;
}

/* tile ARRAY NUMBER HANDLE [STREAM]: maps memory into that tile of the first row, of floats */
static int run_tile(struct client *c, char **word, unsigned count)
{
	CUarrayMapInfo info = tile(c, word);

	info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info.memHandle.memHandle = client_get(c, word[3]);
	return (int)c->cu.cuMemMapArrayAsync(&info, 1, client_stream(c, word, count, 4));
}

static int run_untile(struct client *c, char **word, unsigned count)
{
	CUarrayMapInfo info = tile(c, word);

	return (int)c->cu.cuMemMapArrayAsync(&info, 1, client_stream(c, word, count, 3));
}

/* tiles ARRAY NUMBER COUNT HANDLE [STREAM]: the same for so many tiles, as one part */
static int run_tiles(struct client *c, char **word, unsigned count)
{
	CUarrayMapInfo info = tile(c, word);

	info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info.subresource.sparseLevel.extentWidth *= (unsigned int)client_size(word[3]);
	info.memHandle.memHandle = client_get(c, word[4]);
	return (int)c->cu.cuMemMapArrayAsync(&info, 1, client_stream(c, word, count, 5));
}

static int run_untiles(struct client *c, char **word, unsigned count)
{
	CUarrayMapInfo info = tile(c, word);

	info.subresource.sparseLevel.extentWidth *= (unsigned int)client_size(word[3]);
	return (int)c->cu.cuMemMapArrayAsync(&info, 1, client_stream(c, word, count, 4));
}

/* tilebroken ARRAY NUMBER HANDLE: the same memory twice in a list, of which the driver refuses the second */
static int run_tilebroken(struct client *c, char **word, unsigned count)
{
	CUarrayMapInfo list[] = {tile(c, word), tile(c, word)};

	list[0].memOperationType = list[1].memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	list[0].memHandle.memHandle = list[1].memHandle.memHandle = client_get(c, word[3]);
	list[1].flags = 1; /* none is known */
	return (int)c->cu.cuMemMapArrayAsync(list, 2, client_stream(c, word, count, 4));
}

static void *make_and_destroy(void *data)
{
	struct elsewhere *e = data;
	uint64_t value;

	e->result = e->client->cu.cuCtxSetCurrent(e->context);
	for (unsigned i = 0; i < e->rounds && e->result == CUDA_SUCCESS; i++) {
		e->result = make(e->client, &e->shape, &value);
		if (e->result == CUDA_SUCCESS)
			e->result = destroy(e->client, value);
		else if (e->result == CUDA_ERROR_OUT_OF_MEMORY)
			e->result = CUDA_SUCCESS;
	}
	return NULL;
}

/* arraythreads THREADS ROUNDS SHAPE: each makes and destroys; a refusal is no failure */
static int run_arraythreads(struct client *c, char **word, unsigned count)
{
	unsigned threads = (unsigned)client_size(word[1]);
	struct elsewhere e[THREADS_MOST];
	pthread_t thread[THREADS_MOST];
	int r = 0;

	if (threads > THREADS_MOST)
		return CLIENT_BAD_COMMAND;
	for (unsigned i = 0; i < threads; i++) {
		e[i] = (struct elsewhere){.client = c,
			.rounds = (unsigned)client_size(word[2]),
			.shape = read_shape(word[3])};
		c->cu.cuCtxGetCurrent(&e[i].context);
		if (pthread_create(&thread[i], NULL, make_and_destroy, &e[i]) != 0)
			exit(69);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		if (e[i].result != CUDA_SUCCESS)
			r = (int)e[i].result;
	}
	return r;
}

const struct client_command client_array_commands[] = {
	{"array", 2, run_array, "NAME SHAPE"},
	{"endarray", 1, run_endarray, "NAME [thread]"},
	{"fillarray", 1, run_fillarray, "SHAPE [MOST]"},
	{"droparrays", 0, run_droparrays, "[EVERY]"},
	{"forgetarrays", 0, run_forgetarrays, ""},
	{"level", 3, run_level, "NAME MIPMAP NUMBER"},
	{"tile", 3, run_tile, "ARRAY NUMBER HANDLE [STREAM]"},
	{"untile", 2, run_untile, "ARRAY NUMBER [STREAM]"},
	{"tilebroken", 3, run_tilebroken, "ARRAY NUMBER HANDLE [STREAM]"},
	{"tiles", 4, run_tiles, "ARRAY NUMBER COUNT HANDLE [STREAM]"},
	{"untiles", 3, run_untiles, "ARRAY NUMBER COUNT [STREAM]"},
	{"arraythreads", 3, run_arraythreads, "THREADS ROUNDS SHAPE"},
	{0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compiled programs bring: kernels and variables, known by addresses of the host.
 *
 * The code itself is not read. A kernel is loaded when it is first asked for in a context, as a module with
 * nothing but an empty kernel of its name, so that it takes memory and runs for as long as the simulated driver
 * says of that name (vgpu-sim kernel). A variable likewise is a module with a variable of its size.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cudart/entry.h"

/* cudaErrorInvalidDeviceFunction: there is no such kernel. The driver has no such error. */
#define INVALID_DEVICE_FUNCTION ((CUresult)98)
#define TEXT_HEAD		".version 7.0\n.target sm_70\n.address_size 64\n"

/* Loaded in one context: the device's primary one, of which a reset makes another. */
struct loaded {
	CUcontext context;
	unsigned long long resets;
	CUmodule module;
};

struct item {
	const void *host; /* the key */
	const char *name;
	size_t bytes; /* of a variable; 0: a kernel */
	struct loaded *loaded;
	size_t loaded_count;
};

/* Items by address: open addressing, never full, never smaller again. */
static struct {
	pthread_mutex_t lock;
	struct item **place;
	size_t size, count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t find_place(const void *host)
{
	size_t place = ((uintptr_t)host >> 4) * 11400714819323198485ull % table.size;

	while (table.place[place] && table.place[place]->host != host)
		place = (place + 1) % table.size;
	return place;
}

static bool grow(void)
{
	struct item **old = table.place;
	size_t old_size = table.size;
	struct item **fresh = calloc(old_size ? old_size * 2 : 1024, sizeof(*fresh));

	if (!fresh)
		return false;
	table.place = fresh;
	table.size = old_size ? old_size * 2 : 1024;
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			table.place[find_place(old[i]->host)] = old[i];
	free(old);
	return true;
}

/* Without memory the kernel is unknown, and its launch says so. */
static void add(const void *host, const char *name, size_t bytes)
{
	struct item *item = calloc(1, sizeof(*item));
	size_t place;

	if (!item)
		return;
	*item = (struct item){.host = host, .name = name, .bytes = bytes};
	pthread_mutex_lock(&table.lock);
	if (table.count * 2 >= table.size && !grow()) {
		free(item);
	} else {
		place = find_place(host);
		table.count += !table.place[place];
		free(table.place[place]);
		table.place[place] = item;
	}
	pthread_mutex_unlock(&table.lock);
}

/* Under the lock. */
static CUresult load(
	struct item *item, CUcontext context, unsigned long long resets, CUmodule *ret_module)
{
	size_t room = strlen(item->name) + sizeof(TEXT_HEAD) + 128;
	struct loaded *more = realloc(item->loaded, (item->loaded_count + 1) * sizeof(*more));
	char *text = malloc(room);
	CUresult result;

	if (more)
		item->loaded = more;
	if (!more || !text) {
		free(text);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (item->bytes)
		snprintf(text, room, TEXT_HEAD ".visible .global .align 16 .b8 %s[%zu];\n",
			item->name, item->bytes);
	else
		snprintf(text, room, TEXT_HEAD ".visible .entry %s()\n{ ret; }\n", item->name);
	result = cuModuleLoadData(ret_module, text);
	free(text);
	if (result == CUDA_SUCCESS)
		item->loaded[item->loaded_count++] = (struct loaded){context, resets, *ret_module};
	return result;
}

/* Under the lock. */
static CUresult find_module(struct item *item, CUmodule *ret_module)
{
	unsigned long long resets = runtime_resets();
	CUcontext context;
	CUresult result = cuCtxGetCurrent(&context);

	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < item->loaded_count; i++) {
		if (item->loaded[i].context == context && item->loaded[i].resets == resets) {
			*ret_module = item->loaded[i].module;
			return CUDA_SUCCESS;
		}
	}
	return load(item, context, resets, ret_module);
}

static CUresult find(
	const void *host, bool is_variable, CUmodule *ret_module, const char **ret_name)
{
	CUresult result = is_variable ? CUDA_ERROR_NOT_FOUND : INVALID_DEVICE_FUNCTION;
	struct item *item;

	pthread_mutex_lock(&table.lock);
	item = table.size ? table.place[find_place(host)] : NULL;
	if (item && !item->bytes == !is_variable) {
		*ret_name = item->name;
		result = find_module(item, ret_module);
	}
	pthread_mutex_unlock(&table.lock);
	return result;
}

CUresult runtime_find_function(const void *host, CUfunction *ret_function)
{
	CUmodule module;
	const char *name;
	CUresult result = find(host, false, &module, &name);

	return result == CUDA_SUCCESS ? cuModuleGetFunction(ret_function, module, name) : result;
}

CUresult runtime_find_variable(const void *host, CUdeviceptr *ret_address, size_t *ret_bytes)
{
	CUmodule module;
	const char *name;
	CUresult result = find(host, true, &module, &name);

	return result == CUDA_SUCCESS ? cuModuleGetGlobal_v2(ret_address, ret_bytes, module, name)
				      : result;
}

/* The address of the host is the handle: it is good in every context. */
CUresult runtime_find_kernel(const void *host, void **ret_kernel)
{
	CUmodule module;
	const char *name;
	CUresult result = find(host, false, &module, &name);

	if (result == CUDA_SUCCESS)
		memcpy(ret_kernel, &host, sizeof(host));
	return result;
}

/* The functions that the compiler's own code calls. */

RUNTIME_EXPORT void **__cudaRegisterFatBinary(void *image);
RUNTIME_EXPORT void **__cudaRegisterFatBinary(void *image)
{
	static void *unused;

	(void)image;
	return &unused;
}

RUNTIME_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
RUNTIME_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

RUNTIME_EXPORT void __cudaUnregisterFatBinary(void **handle);
RUNTIME_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

RUNTIME_EXPORT char __cudaInitModule(void **handle);
RUNTIME_EXPORT char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

RUNTIME_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
	const char *name, int thread_limit, void *tid, void *bid, void *block, void *grid,
	int *warp);
RUNTIME_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
	const char *name, int thread_limit, void *tid, void *bid, void *block, void *grid,
	int *warp)
{
	(void)handle, (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block;
	(void)grid, (void)warp;
	add(host, name, 0);
}

RUNTIME_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
	int is_extern, size_t bytes, int is_constant, int is_global);
RUNTIME_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
	int is_extern, size_t bytes, int is_constant, int is_global)
{
	(void)handle, (void)device, (void)is_extern, (void)is_constant, (void)is_global;
	add(host, name, bytes ? bytes : 1);
}

RUNTIME_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device,
	const char *name, int is_extern, size_t bytes, int is_constant, int is_global);
RUNTIME_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device,
	const char *name, int is_extern, size_t bytes, int is_constant, int is_global)
{
	(void)handle, (void)device, (void)is_extern, (void)is_constant, (void)is_global;
	add(host, name, bytes ? bytes : 1);
}

static CUresult get_symbol(void **ret_address, size_t *ret_bytes, const void *symbol)
{
	CUdeviceptr address;
	size_t bytes;
	CUresult result = runtime_find_variable(symbol, &address, &bytes);

	if (result == CUDA_SUCCESS && ret_address)
		*ret_address = (void *)(uintptr_t)address;
	if (result == CUDA_SUCCESS && ret_bytes)
		*ret_bytes = bytes;
	return result;
}

RUNTIME(cudaGetSymbolAddress, (void **address, const void *symbol),
	get_symbol(address, NULL, symbol))
RUNTIME(cudaGetSymbolSize, (size_t * bytes, const void *symbol), get_symbol(NULL, bytes, symbol))

/* SPDX-License-Identifier: Apache-2.0 */
/* The client's words about code: modules, libraries, launches, limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tenant/client.h"
#include "tests/unit/fat_binary.h"

/*
 * PTX that real drivers compile and the simulated one reads: a kernel "k" with a frame of so many
 * bytes in local memory, which the compiler cannot take out, data with static storage, and functions
 * of the device's runtime.
 */
int client_image(char **word, unsigned count, unsigned at, char text[CLIENT_IMAGE_BYTES])
{
	unsigned long long data = 0, frame = 0;
	int has_heap = 0, has_printf = 0, is_managed = 0;
	char declaration[96] = "";

	for (; at < count; at++) {
		if (strncmp(word[at], "data=", 5) == 0)
			data = client_size(word[at] + 5);
		else if (strncmp(word[at], "frame=", 6) == 0)
			frame = client_size(word[at] + 6);
		else if (strcmp(word[at], "heap") == 0)
			has_heap = 1;
		else if (strcmp(word[at], "printf") == 0)
			has_printf = 1;
		else if (strcmp(word[at], "managed") == 0)
			is_managed = 1;
		else
			return -1;
	}
	if (data)
		snprintf(declaration, sizeof(declaration),
			".visible .global %s.align 4 .b8 data[%llu];\n",
			is_managed ? ".attribute(.managed) " : "", data);
	snprintf(text, CLIENT_IMAGE_BYTES,
		".version 7.0\n.target sm_70\n.address_size 64\n"
		"%s%s%s"
		".visible .entry k(.param .u64 out, .param .u64 n)\n{\n"
		"\t.local .align 8 .b8 frame[%llu];\n"
		"\t.reg .b64 %%rd<9>;\n\t.reg .pred %%p<2>;\n\t.param .b64 a;\n\t.param .b64 b;\n"
		"\tld.param.u64 %%rd1, [out];\n\tld.param.u64 %%rd2, [n];\n"
		"\tsetp.eq.u64 %%p1, %%rd1, 0;\n\t@%%p1 bra done;\n"
		"\tmov.u64 %%rd3, frame;\n\tadd.u64 %%rd4, %%rd3, %%rd2;\n"
		"\tst.local.u64 [%%rd4], %%rd2;\n\txor.b64 %%rd5, %%rd2, 8;\n"
		"\tadd.u64 %%rd6, %%rd3, %%rd5;\n\tld.local.u64 %%rd7, [%%rd6];\n"
		"%s%s"
		"\tst.global.u64 [%%rd1], %%rd7;\ndone:\n\tret;\n}\n",
		has_heap ? ".extern .func (.param .b64 r) malloc (.param .b64 s);\n" : "",
		has_printf
			? ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
			: "",
		declaration, frame ? frame : 16,
		has_heap ? "\tst.param.b64 [a], %rd2;\n\tcall.uni (b), malloc, (a);\n"
			   "\tld.param.b64 %rd7, [b];\n"
			 : "",
		has_printf ? "\t{ .param .b32 r;\n\tst.param.b64 [a], %rd2;\n\tst.param.b64 [b], "
			     "%rd2;\n"
			     "\tcall.uni (r), vprintf, (a, b);\n\t}\n"
			   : "");
	return 0;
}

static void keep_function(struct client *c, uintptr_t image, uintptr_t function)
{
	if (c->function_count < CLIENT_FUNCTIONS)
		c->functions[c->function_count++] = (struct client_function){image, function};
}

int client_module(struct client *c, const char *name, CUmodule module)
{
	CUfunction function;
	CUresult r = c->cu.cuModuleGetFunction(&function, module, "k");

	client_put(c, name, (uintptr_t)module);
	if (r == CUDA_SUCCESS)
		keep_function(c, (uintptr_t)module, (uintptr_t)function);
	return (int)r;
}

int client_library(struct client *c, const char *name, CUlibrary library)
{
	CUkernel kernel;
	CUresult r = c->cu.cuLibraryGetKernel(&kernel, library, "k");

	client_put(c, name, (uintptr_t)library);
	if (r == CUDA_SUCCESS)
		keep_function(c, (uintptr_t)library, (uintptr_t)kernel);
	return (int)r;
}

static int run_module(struct client *c, char **word, unsigned count)
{
	char text[CLIENT_IMAGE_BYTES];
	CUmodule module;
	CUresult r;

	if (client_image(word, count, 2, text) < 0)
		return CLIENT_BAD_COMMAND;
	r = c->cu.cuModuleLoadData(&module, text);
	if (r != CUDA_SUCCESS)
		return (int)r;
	return client_module(c, word[1], module);
}

static int run_unload(struct client *c, char **word, unsigned count)
{
	CUresult r = c->cu.cuModuleUnload((CUmodule)(uintptr_t)client_get(c, word[1]));

	(void)count;
	if (r == CUDA_SUCCESS)
		client_forget(c, word[1]);
	return (int)r;
}

static int run_library(struct client *c, char **word, unsigned count)
{
	bool is_fat = count > 2 && strcmp(word[2], "fat") == 0;
	char text[CLIENT_IMAGE_BYTES];
	struct fat_binary fat;
	CUlibrary library;
	CUresult r;

	if (client_image(word, count, is_fat ? 3 : 2, text) < 0)
		return CLIENT_BAD_COMMAND;
	fat_binary_make(&fat, text);
	r = c->cu.cuLibraryLoadData(
		&library, is_fat ? (void *)&fat : text, NULL, NULL, 0, NULL, NULL, 0);
	if (r != CUDA_SUCCESS)
		return (int)r;
	return client_library(c, word[1], library);
}

static int run_endlibrary(struct client *c, char **word, unsigned count)
{
	CUresult r = c->cu.cuLibraryUnload((CUlibrary)(uintptr_t)client_get(c, word[1]));

	(void)count;
	if (r == CUDA_SUCCESS)
		client_forget(c, word[1]);
	return (int)r;
}

uintptr_t client_function_of(const struct client *c, uintptr_t image)
{
	for (unsigned i = c->function_count; i-- > 0;)
		if (c->functions[i].image == image)
			return c->functions[i].function;
	return 0;
}

/* Every question about a library and its kernel; they all say the same. */
static int run_ask(struct client *c, char **word, unsigned count)
{
	CUlibrary library = (CUlibrary)(uintptr_t)client_get(c, word[1]), of;
	CUkernel kernel = (CUkernel)client_function_of(c, (uintptr_t)library), found;
	CUfunction function = (CUfunction)kernel;
	CUlaunchConfig config = {.gridDimX = 1};
	const char *name;
	unsigned kernels;
	size_t size, at;
	int value, more;
#define ASK(symbol, ...) ((symbol##_fn *)client_find(#symbol))(__VA_ARGS__)
	const CUresult answers[] = {
		c->cu.cuLibraryGetKernel(&found, library, "k"),
		ASK(cuLibraryGetKernelCount, &kernels, library),
		ASK(cuLibraryEnumerateKernels, &found, 1, library),
		ASK(cuKernelGetLibrary, &of, kernel),
		ASK(cuKernelGetName, &name, kernel),
		ASK(cuKernelGetParamInfo, kernel, 0, &at, &size),
		ASK(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, c->device),
		ASK(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024,
			kernel, c->device),
		ASK(cuKernelSetCacheConfig, kernel, CU_FUNC_CACHE_PREFER_NONE, c->device),
		ASK(cuOccupancyAvailableDynamicSMemPerBlock, &size, function, 1, 32),
		ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, function, 32, 0),
		ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &value, function, 32, 0,
			0),
		ASK(cuOccupancyMaxActiveClusters, &value, function, &config),
		ASK(cuOccupancyMaxPotentialClusterSize, &value, function, &config),
		ASK(cuOccupancyMaxPotentialBlockSize, &value, &more, function, NULL, 0, 0),
		ASK(cuOccupancyMaxPotentialBlockSizeWithFlags, &value, &more, function, NULL, 0, 0,
			0),
	};

	for (unsigned i = 1; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i] != answers[0])
			return CLIENT_BAD_COMMAND;
	return (int)answers[0];
}

/* What a refused use gives out all the same makes it a bad command. */
static int run_use(struct client *c, char **word, unsigned count)
{
	uintptr_t library = client_get(c, word[1]);
	const char *what = count > 2 ? word[2] : "";
	CUfunction function = NULL;
	CUmodule module = NULL;
	CUdeviceptr data = 0;
	size_t bytes = 0;
	CUresult r;

	if (strcmp(what, "managed") == 0)
		r = ((cuLibraryGetManaged_fn *)client_find("cuLibraryGetManaged"))(
			&data, &bytes, (CUlibrary)library, "data");
	else if (strcmp(what, "module") == 0)
		r = ((cuLibraryGetModule_fn *)client_find("cuLibraryGetModule"))(
			&module, (CUlibrary)library);
	else if (strcmp(what, "data") == 0)
		r = c->cu.cuLibraryGetGlobal(&data, &bytes, (CUlibrary)library, "data");
	else
		r = c->cu.cuKernelGetFunction(&function, (CUkernel)client_function_of(c, library));
	return r != CUDA_SUCCESS && (function || module || data || bytes) ? CLIENT_BAD_COMMAND
									  : (int)r;
}

static int run_launch(struct client *c, char **word, unsigned count)
{
	bool is_none = strcmp(word[1], "none") == 0;
	CUfunction function =
		is_none ? NULL : (CUfunction)client_function_of(c, client_get(c, word[1]));
	uint64_t out = 0, n = 0;
	void *params[] = {&out, &n};
	CUresult r = c->cu.cuLaunchKernel(
		function, 1, 1, 1, 1, 1, 1, 0, client_stream(c, word, count, 2), params, NULL);

	return r == CUDA_SUCCESS && count <= 3 ? (int)c->cu.cuCtxSynchronize() : (int)r;
}

/* stray: a kernel that writes where nothing is, which breaks the current context; what the driver says of it */
static int run_stray(struct client *c, char **word, unsigned count)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   "// vgpu-sim faults=1\n"
				   ".visible .entry k()\n{\n\t.reg .b64 %rd<2>;\n"
				   "\tmov.u64 %rd1, 16;\n\tst.global.u64 [%rd1], %rd1;\n"
				   "\tret;\n}\n";
	CUfunction function;
	CUmodule module;
	CUresult r = c->cu.cuModuleLoadData(&module, text);

	(void)word;
	(void)count;
	if (r == CUDA_SUCCESS)
		r = c->cu.cuModuleGetFunction(&function, module, "k");
	if (r == CUDA_SUCCESS)
		r = c->cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return r == CUDA_SUCCESS ? (int)c->cu.cuCtxSynchronize() : (int)r;
}

static int run_limit(struct client *c, char **word, unsigned count)
{
	CUlimit limit = strcmp(word[1], "stack") == 0  ? CU_LIMIT_STACK_SIZE
			: strcmp(word[1], "heap") == 0 ? CU_LIMIT_MALLOC_HEAP_SIZE
						       : CU_LIMIT_PRINTF_FIFO_SIZE;

	(void)count;
	return (int)c->cu.cuCtxSetLimit(limit, client_size(word[2]));
}

/* Streams that are made and left; says how many before the first refusal. */
static int run_streams(struct client *c, char **word, unsigned count)
{
	uint64_t wanted = client_size(word[1]), made = 0;
	CUresult r = CUDA_SUCCESS;
	CUstream stream;

	(void)count;
	while (made < wanted && r == CUDA_SUCCESS) {
		r = made % 2 ? c->cu.cuStreamCreateWithPriority(&stream, 1, -1)
			     : c->cu.cuStreamCreate(&stream, 1);
		made += r == CUDA_SUCCESS;
	}
	client_say(c, " count=%llu", (unsigned long long)made);
	return (int)r;
}

/* Modules with so much data each, which stay, until one is refused. */
static int run_fillcode(struct client *c, char **word, unsigned count)
{
	char name[] = "fc", data[32];
	char *module[] = {NULL, name, data};
	uint64_t taken = 0;
	int r;

	(void)count;
	snprintf(data, sizeof(data), "data=%s", word[1]);
	while ((r = run_module(c, module, 3)) == 0)
		taken++;
	client_say(c, " count=%llu", (unsigned long long)taken);
	return r;
}

static CUresult make_green(CUdevice device)
{
	cuDeviceGetDevResource_fn *ask =
		(cuDeviceGetDevResource_fn *)client_find("cuDeviceGetDevResource");
	cuDevSmResourceSplitByCount_fn *split =
		(cuDevSmResourceSplitByCount_fn *)client_find("cuDevSmResourceSplitByCount");
	cuDevResourceGenerateDesc_fn *describe =
		(cuDevResourceGenerateDesc_fn *)client_find("cuDevResourceGenerateDesc");
	cuGreenCtxCreate_fn *create = (cuGreenCtxCreate_fn *)client_find("cuGreenCtxCreate");
	CUdevResourceDesc description;
	CUdevResource all, part;
	unsigned int parts = 1;
	CUgreenCtx green;
	CUresult r = ask(device, &all, CU_DEV_RESOURCE_TYPE_SM);

	if (r == CUDA_SUCCESS)
		r = split(&part, &parts, &all, NULL, 0, all.sm.minSmPartitionSize);
	if (r == CUDA_SUCCESS)
		r = describe(&description, &part, 1);
	if (r == CUDA_SUCCESS)
		r = create(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
	return r;
}

/* Green contexts that are made and left; says how many before the first refusal. */
static int run_greens(struct client *c, char **word, unsigned count)
{
	uint64_t wanted = client_size(word[1]), made = 0;
	CUresult r = CUDA_SUCCESS;

	(void)count;
	while (made < wanted && r == CUDA_SUCCESS) {
		r = make_green(c->device);
		made += r == CUDA_SUCCESS;
	}
	client_say(c, " count=%llu", (unsigned long long)made);
	return (int)r;
}

const struct client_command client_code_commands[] = {
	{"module", 1, run_module, "NAME [data=SIZE] [frame=SIZE] [heap] [printf] [managed]"},
	{"unload", 1, run_unload, "NAME"},
	{"library", 1, run_library,
		"NAME [fat] [data=SIZE] [frame=SIZE] [heap] [printf] [managed]"},
	{"asklibrary", 1, run_ask, "NAME"},
	{"endlibrary", 1, run_endlibrary, "NAME"},
	{"uselibrary", 1, run_use, "NAME [data|managed|module]"},
	{"launch", 1, run_launch, "NAME|none [STREAM [nowait]]"},
	{"stray", 0, run_stray, ""},
	{"limit", 2, run_limit, "stack|heap|printf SIZE"},
	{"streams", 1, run_streams, "COUNT"},
	{"fillcode", 1, run_fillcode, "SIZE"},
	{"greens", 1, run_greens, "COUNT"},
	{0},
};

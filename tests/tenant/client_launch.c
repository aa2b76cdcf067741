/* SPDX-License-Identifier: Apache-2.0 */
/* The client's words about images in files, forms of launches, green contexts, and references. */
#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/tenant/client.h"

/* A cubin with a kernel "k", its frame, and data, as far as anybody but a device reads it. */
struct cubin {
	Elf64_Ehdr head;
	Elf64_Shdr section[6];
	Elf64_Sym symbol[3];
	struct {
		unsigned char form, attribute;
		uint16_t bytes;
		uint32_t symbol, frame;
	} info;
	char names[96];
};

enum { NULL_SECTION, TEXT, DATA, INFO, SYMBOLS, NAMES };

static const char names[] = "\0.text.k\0.nv.global\0.nv.info\0k\0data";
enum { NAME_TEXT = 1, NAME_DATA = 9, NAME_INFO = 20, NAME_K = 29, NAME_VARIABLE = 31 };

static struct cubin make_cubin(uint64_t data_bytes, uint32_t frame_bytes)
{
	struct cubin c = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			.e_shoff = offsetof(struct cubin, section),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 6,
			.e_shstrndx = NAMES},
		.section = {[TEXT] = {.sh_name = NAME_TEXT,
				    .sh_type = SHT_PROGBITS,
				    .sh_flags = SHF_ALLOC,
				    .sh_size = 64},
			[DATA] = {.sh_name = NAME_DATA,
				.sh_type = SHT_NOBITS,
				.sh_flags = SHF_ALLOC | SHF_WRITE,
				.sh_size = data_bytes},
			[INFO] = {.sh_name = NAME_INFO,
				.sh_type = SHT_PROGBITS,
				.sh_offset = offsetof(struct cubin, info),
				.sh_size = sizeof(c.info)},
			[SYMBOLS] = {.sh_type = SHT_SYMTAB,
				.sh_link = NAMES,
				.sh_offset = offsetof(struct cubin, symbol),
				.sh_size = sizeof(c.symbol)},
			[NAMES] = {.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct cubin, names),
				.sh_size = sizeof(names)}},
		.symbol = {[1] = {.st_name = NAME_K,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = TEXT},
			[2] = {.st_name = NAME_VARIABLE,
				.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
				.st_shndx = DATA,
				.st_size = data_bytes}},
		.info = {.form = 4,
			.attribute = 0x11,
			.bytes = 8,
			.symbol = 1,
			.frame = frame_bytes},
	};

	memcpy(c.names, names, sizeof(names));
	return c;
}

/* imagefile PATH ptx|cubin ...: of a cubin only data= and frame= */
static int run_imagefile(struct client *c, char **word, unsigned count)
{
	char text[CLIENT_IMAGE_BYTES] = "";
	uint64_t data = 0, frame = 0;
	FILE *file = fopen(word[1], "w");
	struct cubin cubin;
	bool is_done;

	for (unsigned i = 3; i < count; i++) {
		if (strncmp(word[i], "data=", 5) == 0)
			data = client_size(word[i] + 5);
		else if (strncmp(word[i], "frame=", 6) == 0)
			frame = client_size(word[i] + 6);
	}
	cubin = make_cubin(data, (uint32_t)frame);
	if (!file)
		return CLIENT_FAILED;
	if (strcmp(word[2], "cubin") == 0)
		is_done = fwrite(&cubin, sizeof(cubin), 1, file) == 1;
	else
		is_done = client_image(word, count, 3, text) == 0 && fputs(text, file) >= 0;
	return fclose(file) == 0 && is_done ? 0 : CLIENT_FAILED;
}

/* loadfile NAME PATH */
static int run_loadfile(struct client *c, char **word, unsigned count)
{
	cuModuleLoad_fn *load = (cuModuleLoad_fn *)client_find("cuModuleLoad");
	CUmodule module;
	CUresult r = load(&module, word[2]);

	return r == CUDA_SUCCESS ? client_module(c, word[1], module) : (int)r;
}

/* libraryfile NAME PATH */
static int run_libraryfile(struct client *c, char **word, unsigned count)
{
	cuLibraryLoadFromFile_fn *load =
		(cuLibraryLoadFromFile_fn *)client_find("cuLibraryLoadFromFile");
	CUlibrary library;
	CUresult r = load(&library, word[2], NULL, NULL, 0, NULL, NULL, 0);

	return r == CUDA_SUCCESS ? client_library(c, word[1], library) : (int)r;
}

#define TOIL_AHEAD 16 /* launches that are waited for together */

/* toil NAME MILLISECONDS: launches the kernel again and again; how often */
static int run_toil(struct client *c, char **word, unsigned count)
{
	CUfunction function = (CUfunction)client_function_of(c, client_get(c, word[1]));
	uint64_t until_ns = clock_now_ns() + client_size(word[2]) * 1000000, done = 0;
	uint64_t out = 0, n = 0;
	void *params[] = {&out, &n};
	CUresult r = CUDA_SUCCESS;

	while (r == CUDA_SUCCESS && clock_now_ns() < until_ns) {
		for (unsigned i = 0; i < TOIL_AHEAD && r == CUDA_SUCCESS; i++, done++)
			r = c->cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
		if (r == CUDA_SUCCESS)
			r = c->cu.cuCtxSynchronize();
	}
	client_say(c, " launches=%llu", (unsigned long long)done);
	return (int)r;
}

static int run_moduleex(struct client *c, char **word, unsigned count)
{
	cuModuleLoadDataEx_fn *load = (cuModuleLoadDataEx_fn *)client_find("cuModuleLoadDataEx");
	char text[CLIENT_IMAGE_BYTES];
	CUmodule module;
	CUresult r;

	if (client_image(word, count, 2, text) < 0)
		return CLIENT_BAD_COMMAND;
	r = load(&module, text, 0, NULL, NULL);
	return r == CUDA_SUCCESS ? client_module(c, word[1], module) : (int)r;
}

static int run_modulefat(struct client *c, char **word, unsigned count)
{
	cuModuleLoadFatBinary_fn *load =
		(cuModuleLoadFatBinary_fn *)client_find("cuModuleLoadFatBinary");
	char text[CLIENT_IMAGE_BYTES];
	CUmodule module;
	CUresult r;

	if (client_image(word, count, 2, text) < 0)
		return CLIENT_BAD_COMMAND;
	r = load(&module, text);
	return r == CUDA_SUCCESS ? client_module(c, word[1], module) : (int)r;
}

static int run_funcload(struct client *c, char **word, unsigned count)
{
	cuFuncLoad_fn *load = (cuFuncLoad_fn *)client_find("cuFuncLoad");

	return (int)load((CUfunction)client_function_of(c, client_get(c, word[1])));
}

static bool is_of_thread(const struct client *c)
{
	return c->door == DOOR_LINKED_THREAD;
}

/* launchex NAME [STREAM] */
static int run_launchex(struct client *c, char **word, unsigned count)
{
	CUfunction function = (CUfunction)client_function_of(c, client_get(c, word[1]));
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = client_stream(c, word, count, 2)};
	uint64_t out = 0, n = 0;
	void *params[] = {&out, &n};

	if (is_of_thread(c))
		return (int)((cuLaunchKernelEx_ptsz_fn *)client_find("cuLaunchKernelEx_ptsz"))(
			&config, function, params, NULL);
	return (int)((cuLaunchKernelEx_fn *)client_find("cuLaunchKernelEx"))(
		&config, function, params, NULL);
}

/* launchcoop NAME [STREAM] */
static int run_launchcoop(struct client *c, char **word, unsigned count)
{
	CUfunction function = (CUfunction)client_function_of(c, client_get(c, word[1]));
	CUstream stream = client_stream(c, word, count, 2);
	uint64_t out = 0, n = 0;
	void *params[] = {&out, &n};

	if (is_of_thread(c))
		return (int)((cuLaunchCooperativeKernel_ptsz_fn *)client_find(
			"cuLaunchCooperativeKernel_ptsz"))(
			function, 1, 1, 1, 1, 1, 1, 0, stream, params);
	return (int)((cuLaunchCooperativeKernel_fn *)client_find("cuLaunchCooperativeKernel"))(
		function, 1, 1, 1, 1, 1, 1, 0, stream, params);
}

/* launchmulti NAME [STREAM] */
static int run_launchmulti(struct client *c, char **word, unsigned count)
{
	cuLaunchCooperativeKernelMultiDevice_fn *launch =
		(cuLaunchCooperativeKernelMultiDevice_fn *)client_find(
			"cuLaunchCooperativeKernelMultiDevice");
	uint64_t out = 0, n = 0;
	void *params[] = {&out, &n};
	CUDA_LAUNCH_PARAMS one = {
		.function = (CUfunction)client_function_of(c, client_get(c, word[1])),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = client_stream(c, word, count, 2),
		.kernelParams = params};

	return (int)launch(&one, 1, 0);
}

/* launchold NAME 1|grid|async: as CUDA 2 and 3 have it, with no parameters but zeroes */
static int run_launchold(struct client *c, char **word, unsigned count)
{
	CUfunction function = (CUfunction)client_function_of(c, client_get(c, word[1]));
	CUresult r =
		((cuFuncSetBlockShape_fn *)client_find("cuFuncSetBlockShape"))(function, 1, 1, 1);

	if (r == CUDA_SUCCESS)
		r = ((cuParamSetSize_fn *)client_find("cuParamSetSize"))(function, 16);
	if (r != CUDA_SUCCESS)
		return (int)r;
	if (strcmp(word[2], "grid") == 0)
		return (int)((cuLaunchGrid_fn *)client_find("cuLaunchGrid"))(function, 1, 1);
	if (strcmp(word[2], "async") == 0)
		return (int)((cuLaunchGridAsync_fn *)client_find("cuLaunchGridAsync"))(
			function, 1, 1, NULL);
	return (int)((cuLaunch_fn *)client_find("cuLaunch"))(function);
}

/* green NAME DEVICE: a green context of half the device's multiprocessors */
static int run_green(struct client *c, char **word, unsigned count)
{
	CUdevice device = (CUdevice)client_size(word[2]);
	CUdevResourceDesc description;
	unsigned int parts = 1;
	CUdevResource all, part;
	CUgreenCtx green;
	CUresult r = c->cu.cuInit(0);

	if (r == CUDA_SUCCESS)
		r = ((cuDeviceGetDevResource_fn *)client_find("cuDeviceGetDevResource"))(
			device, &all, CU_DEV_RESOURCE_TYPE_SM);
	if (r == CUDA_SUCCESS)
		r = ((cuDevSmResourceSplitByCount_fn *)client_find("cuDevSmResourceSplitByCount"))(
			&part, &parts, &all, NULL, 0, 8);
	if (r == CUDA_SUCCESS)
		r = ((cuDevResourceGenerateDesc_fn *)client_find("cuDevResourceGenerateDesc"))(
			&description, &part, 1);
	if (r == CUDA_SUCCESS)
		r = ((cuGreenCtxCreate_fn *)client_find("cuGreenCtxCreate"))(
			&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)green);
	return (int)r;
}

static CUgreenCtx green_named(struct client *c, const char *name)
{
	return (CUgreenCtx)(uintptr_t)client_get(c, name);
}

/* usegreen NAME: makes it current */
static int run_usegreen(struct client *c, char **word, unsigned count)
{
	cuCtxFromGreenCtx_fn *convert = (cuCtxFromGreenCtx_fn *)client_find("cuCtxFromGreenCtx");
	CUcontext context;
	CUresult r = convert(&context, green_named(c, word[1]));

	return (int)(r == CUDA_SUCCESS ? c->cu.cuCtxSetCurrent(context) : r);
}

/* greenstream NAME GREEN */
static int run_greenstream(struct client *c, char **word, unsigned count)
{
	cuGreenCtxStreamCreate_fn *create =
		(cuGreenCtxStreamCreate_fn *)client_find("cuGreenCtxStreamCreate");
	CUstream stream;
	CUresult r = create(&stream, green_named(c, word[2]), CU_STREAM_NON_BLOCKING, 0);

	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)stream);
	return (int)r;
}

static int run_endgreen(struct client *c, char **word, unsigned count)
{
	cuGreenCtxDestroy_fn *destroy = (cuGreenCtxDestroy_fn *)client_find("cuGreenCtxDestroy");

	return (int)destroy(green_named(c, word[1]));
}

/* attach: one reference more to the current context; detach NAME: one less */
static int run_attach(struct client *c, char **word, unsigned count)
{
	CUcontext context;

	return (int)((cuCtxAttach_fn *)client_find("cuCtxAttach"))(&context, 0);
}

static int run_detach(struct client *c, char **word, unsigned count)
{
	return (int)((cuCtxDetach_fn *)client_find("cuCtxDetach"))(
		(CUcontext)(uintptr_t)client_get(c, word[1]));
}

const struct client_command client_launch_commands[] = {
	{"imagefile", 2, run_imagefile, "PATH ptx|cubin [data=SIZE] [frame=SIZE]"},
	{"loadfile", 2, run_loadfile, "NAME PATH"},
	{"libraryfile", 2, run_libraryfile, "NAME PATH"},
	{"moduleex", 1, run_moduleex, "NAME [data=SIZE] [frame=SIZE]"},
	{"modulefat", 1, run_modulefat, "NAME [data=SIZE] [frame=SIZE]"},
	{"funcload", 1, run_funcload, "NAME"},
	{"toil", 2, run_toil, "NAME MILLISECONDS"},
	{"launchex", 1, run_launchex, "NAME [STREAM]"},
	{"launchcoop", 1, run_launchcoop, "NAME [STREAM]"},
	{"launchmulti", 1, run_launchmulti, "NAME [STREAM]"},
	{"launchold", 2, run_launchold, "NAME one|grid|async"},
	{"green", 2, run_green, "NAME DEVICE"},
	{"usegreen", 1, run_usegreen, "NAME"},
	{"greenstream", 2, run_greenstream, "NAME GREEN"},
	{"endgreen", 1, run_endgreen, "NAME"},
	{"attach", 0, run_attach, ""},
	{"detach", 1, run_detach, "CONTEXT"},
	{0},
};

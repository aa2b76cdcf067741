/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client's words for copies and fills: any function of the driver with what is named, which is
 * numbers and pointers alone, and the descriptions and lists that such functions are given.
 */
#include "tests/tenant/client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS 9
#define BATCH	  2

/* More arguments than most have; they are all in registers or above on the stack. */
typedef CUresult any_fn(long, long, long, long, long, long, long, long, long);

enum form { FORM_BOTH, FORM_LEGACY, FORM_THREAD };
static const struct {
	const char *symbol, *base;
	int version;
	enum form form;
} entries[] = {
#define ENTRY(symbol, base, version, form) {#symbol, #base, version, FORM_##form},
#include "sim/cuda/entry.def"
};

/* What a program asks cuGetProcAddress for to get the symbol: its base name at its version. */
static void *ask_driver(const char *symbol)
{
	cuGetProcAddress_v2_fn *get = (cuGetProcAddress_v2_fn *)client_find("cuGetProcAddress_v2");
	CUdriverProcAddressQueryResult status;
	void *function = NULL;

	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (strcmp(entries[i].symbol, symbol) == 0)
			get(entries[i].base, &function, entries[i].version,
				entries[i].form == FORM_THREAD
					? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
					: CU_GET_PROC_ADDRESS_LEGACY_STREAM,
				&status);
	return function;
}

/* The function as a program finds it that goes through the client's door. */
static void *find(const struct client *c, const char *symbol)
{
	void *function;

	if (c->door >= DOOR_PROCADDR)
		function = ask_driver(symbol);
	else if (c->door == DOOR_DLOPEN)
		function = client_find(symbol);
	else
		function = dlsym(c->door == DOOR_NEXT ? RTLD_NEXT : RTLD_DEFAULT, symbol);
	if (!function) {
		fprintf(stderr, "client: nobody has %s\n", symbol);
		exit(69);
	}
	return function;
}

static long argument(struct client *c, const char *word)
{
	return (long)(word[0] >= '0' && word[0] <= '9' ? client_size(word) : client_get(c, word));
}

/* call SYMBOL ARGUMENT...: numbers and names */
static int run_call(struct client *c, char **word, unsigned count)
{
	any_fn *function = (any_fn *)find(c, word[1]);
	long a[ARGUMENTS] = {0};

	for (unsigned i = 2; i < count && i < 2 + ARGUMENTS; i++)
		a[i - 2] = argument(c, word[i]);
	return (int)function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
}

/* found SYMBOL: the library in which the function lies that the door gives */
static int run_found(struct client *c, char **word, unsigned count)
{
	const char *slash;
	Dl_info info;

	if (!dladdr(find(c, word[1]), &info))
		return CLIENT_FAILED;
	slash = strrchr(info.dli_fname, '/');
	client_say(c, " found=%s", slash ? slash + 1 : info.dli_fname);
	return 0;
}

/* Host memory that is never the same twice in a row. */
static int run_hostmem(struct client *c, char **word, unsigned count)
{
	size_t bytes = (size_t)client_size(word[2]);
	unsigned char *memory = malloc(bytes);

	if (!memory)
		return CLIENT_FAILED;
	for (size_t i = 0; i < bytes; i++)
		memory[i] = (unsigned char)(i * 7 + i / 251 + (unsigned char)word[1][0]);
	client_put(c, word[1], (uintptr_t)memory);
	return 0;
}

/* A number for content (FNV-1a). */
static void say_hash(struct client *c, const char *name, const unsigned char *bytes, size_t count)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	client_say(c, " %s=%08x", name, hash);
}

static int say_content(struct client *c, const char *name, bool is_array, size_t bytes)
{
	cuMemcpy_fn *copy = (cuMemcpy_fn *)client_find("cuMemcpy");
	cuMemcpyAtoH_v2_fn *from_array = (cuMemcpyAtoH_v2_fn *)client_find("cuMemcpyAtoH_v2");
	unsigned char *content = malloc(bytes);
	uint64_t value = client_get(c, name);
	CUresult r;

	if (!content)
		return CLIENT_FAILED;
	r = is_array ? from_array(content, (CUarray)(uintptr_t)value, 0, bytes)
		     : copy((uintptr_t)content, value, bytes);
	if (r == CUDA_SUCCESS)
		say_hash(c, name, content, bytes);
	free(content);
	return (int)r;
}

/* content SIZE NAME...: memory anywhere; [NAME] is an array */
static int run_content(struct client *c, char **word, unsigned count)
{
	size_t bytes = (size_t)client_size(word[1]);
	int r = (int)c->cu.cuCtxSynchronize();

	for (unsigned i = 2; i < count && r == 0; i++) {
		bool is_array = word[i][0] == '[';

		if (is_array)
			*strchrnul(++word[i], ']') = '\0';
		r = say_content(c, word[i], is_array, bytes);
	}
	return r;
}

static void *keep_named(struct client *c, const char *name, const char *part, size_t bytes)
{
	void *memory = calloc(1, bytes);
	char whole[24];

	if (!memory)
		exit(67);
	snprintf(whole, sizeof(whole), "%s.%s", name, part);
	client_put(c, whole, (uintptr_t)memory);
	return memory;
}

struct side {
	CUmemorytype type;
	uint64_t value;
};

static struct side read_side(struct client *c, const char *type, const char *name)
{
	static const char *const types[] = {[CU_MEMORYTYPE_HOST] = "host",
		[CU_MEMORYTYPE_DEVICE] = "device",
		[CU_MEMORYTYPE_ARRAY] = "array",
		[CU_MEMORYTYPE_UNIFIED] = "any"};

	for (int i = CU_MEMORYTYPE_HOST; i <= CU_MEMORYTYPE_UNIFIED; i++)
		if (strcmp(types[i], type) == 0)
			return (struct side){(CUmemorytype)i, client_get(c, name)};
	exit(64);
}

/* Rows of a quarter of the memory's width, in the members that all descriptions have. */
#define DESCRIBE(d, to, from, width, height)                                                     \
	do {                                                                                     \
		(d)->dstMemoryType = (to).type;                                                  \
		(d)->srcMemoryType = (from).type;                                                \
		(d)->dstPitch = (d)->srcPitch = (width);                                         \
		(d)->WidthInBytes = (width) / 4;                                                 \
		(d)->Height = (height);                                                          \
		(d)->dstHost = (void *)(uintptr_t)(to).value;                                    \
		(d)->srcHost = (const void *)(uintptr_t)(from).value;                            \
		(d)->dstArray = (to).type == CU_MEMORYTYPE_ARRAY ? (CUarray)(d)->dstHost : NULL; \
		(d)->srcArray = (from).type == CU_MEMORYTYPE_ARRAY                               \
					? (CUarray)(uintptr_t)(from).value                       \
					: NULL;                                                  \
		(d)->dstDevice = (__typeof__((d)->dstDevice))(to).value;                         \
		(d)->srcDevice = (__typeof__((d)->srcDevice))(from).value;                       \
	} while (0)

/* shape NAME TYPE TO TYPE FROM WIDTH HEIGHT: as NAME.2, NAME.3, NAME.peer, NAME.old2, NAME.old3 */
static int run_shape(struct client *c, char **word, unsigned count)
{
	CUDA_MEMCPY2D *flat = keep_named(c, word[1], "2", sizeof(*flat));
	CUDA_MEMCPY3D *deep = keep_named(c, word[1], "3", sizeof(*deep));
	CUDA_MEMCPY3D_PEER *peer = keep_named(c, word[1], "peer", sizeof(*peer));
	CUDA_MEMCPY2D_v1 *old_flat = keep_named(c, word[1], "old2", sizeof(*old_flat));
	CUDA_MEMCPY3D_v1 *old_deep = keep_named(c, word[1], "old3", sizeof(*old_deep));
	struct side to = read_side(c, word[2], word[3]), from = read_side(c, word[4], word[5]);
	unsigned width = (unsigned)client_size(word[6]), height = (unsigned)client_size(word[7]);

	DESCRIBE(flat, to, from, width, height);
	DESCRIBE(deep, to, from, width, height);
	DESCRIBE(peer, to, from, width, height);
	DESCRIBE(old_flat, to, from, width, height);
	DESCRIBE(old_deep, to, from, width, height);
	deep->Depth = peer->Depth = old_deep->Depth = 1;
	peer->dstContext = peer->srcContext = (CUcontext)(uintptr_t)client_get(c, "old");
	return 0;
}

/*
 * batch NAME SIZE TO FROM TO FROM: the lists NAME.to, NAME.from, NAME.sizes with one attribute
 * NAME.how, NAME.at and one location NAME.where from the first on; and the same as NAME.list.
 */
static int run_batch(struct client *c, char **word, unsigned count)
{
	CUdeviceptr *to = keep_named(c, word[1], "to", BATCH * sizeof(*to));
	CUdeviceptr *from = keep_named(c, word[1], "from", BATCH * sizeof(*from));
	size_t *sizes = keep_named(c, word[1], "sizes", BATCH * sizeof(*sizes));
	CUmemcpyAttributes *how = keep_named(c, word[1], "how", sizeof(*how));
	CUmemLocation *where = keep_named(c, word[1], "where", sizeof(*where));
	CUDA_MEMCPY3D_BATCH_OP *list = keep_named(c, word[1], "list", BATCH * sizeof(*list));

	keep_named(c, word[1], "at", sizeof(size_t));
	keep_named(c, word[1], "failed", sizeof(size_t));
	how->srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	*where = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device};
	for (unsigned i = 0; i < BATCH; i++) {
		to[i] = client_get(c, word[3 + 2 * i]);
		from[i] = client_get(c, word[4 + 2 * i]);
		sizes[i] = (size_t)client_size(word[2]);
		list[i].src.type = list[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
		list[i].dst.op.ptr.ptr = to[i];
		list[i].src.op.ptr.ptr = from[i];
		list[i].extent = (CUextent3D){sizes[i] / 4, 4, 1};
		list[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	}
	return 0;
}

const struct client_command client_copy_commands[] = {
	{"call", 1, run_call, "SYMBOL [ARGUMENT...]"},
	{"found", 1, run_found, "SYMBOL"},
	{"hostmem", 2, run_hostmem, "NAME SIZE"},
	{"content", 2, run_content, "SIZE NAME..."},
	{"shape", 7, run_shape, "NAME TYPE TO TYPE FROM WIDTH HEIGHT"},
	{"batch", 6, run_batch, "NAME SIZE TO FROM TO FROM"},
	{0},
};

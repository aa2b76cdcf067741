/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of a module whose PTX writes their sizes in every way that the language has, moved to the
 * device. NVML shows no managed memory, so what the library does not read off the text is charged nowhere.
 *
 * PTX was searched for words: a size in hexadecimal, a second name after a comma, a declaration right behind a
 * semicolon or a brace, an expression, a text that begins with a tab were each taken for nothing, and 4 GiB stayed
 * in a slice of 2 GiB. Now the text is read word by word, and one that is not understood is refused where it names
 * managed memory.
 */
#include <string.h>

#include "tests/hostile/hostile.h"

#define DATA_BYTES UINT64_C(0x100000000)
#define MANAGED	   ".global .attribute(.managed) .align 4 .b8 "

/* What stands before the text's ".version", and the variables of the module. */
static const struct {
	const char *before, *variables;
} ways[] = {
	{"", MANAGED "data[0x100000000];"},
	{"", MANAGED "data[040000000000];"},
	{"", MANAGED "data[0b100000000000000000000000000000000];"},
	{"", MANAGED "data[4294967296U];"},
	{"", MANAGED "first, data[4294967296];"},
	{"", MANAGED "first[2] = {1, 2}, data[4294967296];"},
	{"", ".global .b8 first;" MANAGED "data[4294967296];"},
	{"", ".func f() {ret;}" MANAGED "data[4294967296];"},
	{"", MANAGED "data[4 * (1 << 30)];"},
	{"", MANAGED "data[(.s64) 1 ? 4294967296 : 1];"},
	{"", MANAGED "data[65536][65536];"},
	{"", MANAGED "/* [1]; */ data // [1];\n [4294967296];"},
	{"", ".global\n.attribute ( .managed )\n.b8 data[4294967296];"},
	{"", ".global .attribute(.managed) .v4 .b64 data[134217728];"},
	{"\t", MANAGED "data[4294967296];"},
	{"\xef\xbb\xbf", MANAGED "data[4294967296];"},
	{"/* .version */", MANAGED "data[4294967296];"},
	{"", MANAGED "data[-1 + 4294967297];"},
	{"", MANAGED "data[~(~0 << 32) + 1];"},
};

static void attack(void)
{
	hostile_begin();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char text[HOSTILE_CODE_BYTES], whole[HOSTILE_CODE_BYTES + 32];
		CUdeviceptr data;
		CUmodule module;
		size_t bytes;

		hostile_ptx(&(struct hostile_code){.variables = ways[i].variables}, text);
		snprintf(whole, sizeof(whole), "%s%s", ways[i].before, text);
		if (cuModuleLoadData(&module, whole) != CUDA_SUCCESS)
			continue;
		MUST(cuModuleGetGlobal_v2(&data, &bytes, module, "data"));
		MUST(bytes != DATA_BYTES);
		cuMemPrefetchAsync(data, bytes, 0, NULL);
		MUST(cuCtxSynchronize());
		hostile_look();
		MUST(cuModuleUnload(module));
	}
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}

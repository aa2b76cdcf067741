/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A variable is asked for that a library does not have: the driver loads the library's data before it says so.
 *
 * A use that failed was not judged: 5,894 MiB were held in a slice of 2,048, and with more variables as much as one liked. Now
 * the library is unloaded where its data do not fit. Where they do, they are charged once, and the library can be used.
 */
#include "tests/hostile/hostile.h"

static void ask_for_nothing(CUlibrary library)
{
	CUdeviceptr pointer;
	CUfunction function;
	size_t bytes;

	MUST(cuLibraryGetGlobal(&pointer, &bytes, library, "nothing") == CUDA_SUCCESS);
	hostile_look();
	MUST(cuLibraryGetManaged(&pointer, &bytes, library, "nothing") == CUDA_SUCCESS);
	hostile_look();
	MUST(cuLibraryGetUnifiedFunction((void **)&function, library, "nothing") == CUDA_SUCCESS);
	hostile_look();
}

/* One that fits: what is there must be given, and be charged for once. */
static void ask_for_all(CUlibrary library)
{
	CUdeviceptr pointer;
	size_t bytes;

	ask_for_nothing(library);
	MUST(cuLibraryGetGlobal(&pointer, &bytes, library, "data"));
	cuMemAlloc_v2(&pointer, GIB);
	hostile_look();
	MUST(cuLibraryUnload(library));
}

static void attack(void)
{
	struct hostile_code large = {.variables =
					     ".visible .global .align 4 .b8 data[0x70000000];\n"
					     ".visible .global .align 4 .b8 more[0x70000000];\n"
					     ".visible .global .align 4 .b8 much[0x70000000];"};
	struct hostile_code fitting = {
		.variables = ".visible .global .align 4 .b8 data[0x40000000];"};
	char text[HOSTILE_CODE_BYTES];
	CUlibrary library;

	hostile_begin();
	MUST(cuLibraryLoadData(&library, hostile_fat_binary(&large), NULL, NULL, 0, NULL, NULL, 0));
	ask_for_nothing(library);
	MUST(cuLibraryUnload(library));
	MUST(cuLibraryLoadData(
		&library, hostile_ptx(&fitting, text), NULL, NULL, 0, NULL, NULL, 0));
	ask_for_all(library);
	MUST(cuLibraryLoadData(
		&library, hostile_fat_binary(&fitting), NULL, NULL, 0, NULL, NULL, 0));
	ask_for_nothing(library);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}

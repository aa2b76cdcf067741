/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module of a library's kernel is asked for, with the kernel in a function's place: the library's 3 GiB of variables are
 * loaded for the answer.
 *
 * That call was taken for a question, and 3.5 GiB were held in a slice of 2 GiB. Now the library is loaded, or refused, before.
 */
#include "tests/hostile/hostile.h"

static void attack(void)
{
	struct hostile_code code = {.variables = ".global .align 4 .b8 data[0xc0000000];"};
	char text[HOSTILE_CODE_BYTES];
	CUlibrary library;
	CUmodule module;
	CUkernel kernel;

	hostile_begin();
	hostile_ptx(&code, text);
	if (cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS)
		return;
	MUST(cuLibraryGetKernel(&kernel, library, "k"));
	cuFuncGetModule(&module, (CUfunction)kernel);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is exchanged for other code within a slow call. */
#include "tests/hostile/exchanged.h"

#define ROUNDS 30

struct exchanged exchanged;

void exchanged_load(const char *text)
{
	CUkernel kernel;

	if (exchanged.is_library) {
		MUST(cuLibraryLoadData(&exchanged.library, text, NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryGetKernel(&kernel, exchanged.library, "k"));
		exchanged.function = (CUfunction)kernel;
	} else {
		MUST(cuModuleLoadData(&exchanged.module, text));
		MUST(cuModuleGetFunction(&exchanged.function, exchanged.module, "k"));
	}
}

CUresult exchanged_unload(void)
{
	return exchanged.is_library ? cuLibraryUnload(exchanged.library)
				    : cuModuleUnload(exchanged.module);
}

void exchanged_begin(bool is_library)
{
	struct hostile_code small = {.variables = ".visible .global .align 4 .b8 data[16];"};
	struct hostile_code frames = {.frame_bytes = 60000};
	struct hostile_code data = {
		.variables = ".visible .global .align 4 .b8 data[0x200000000];"};

	exchanged.is_library = is_library;
	exchanged.context = hostile_begin();
	hostile_ptx(&small, exchanged.small);
	hostile_ptx(is_library ? &data : &frames, exchanged.large);
	for (int i = 0; i < ROUNDS; i++) {
		exchanged_load(exchanged.small);
		MUST(exchanged_unload());
	}
	exchanged_load(exchanged.small);
}

void exchanged_load_until(CUfunction before)
{
	for (int i = 0; i < ROUNDS; i++) {
		exchanged_load(exchanged.large);
		if (exchanged.function == before || exchanged_unload() != CUDA_SUCCESS)
			return;
	}
}

void exchanged_beside(void *(*use)(void *unused), void (*exchange)(void))
{
	pthread_t thread = hostile_begin_slowly(use);

	exchange();
	MUST(pthread_join(thread, NULL));
	usleep(100000);
	hostile_look();
}

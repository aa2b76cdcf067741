/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a library by itself and has it ask. The arguments are its path and the function's name. */
#include <dlfcn.h>
#include <stdio.h>

#include "tests/tenant/own_names.h"

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	own_ask_fn *ask = library ? (own_ask_fn *)dlsym(library, argv[2]) : NULL;

	if (!ask) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	ask();
	return 0;
}

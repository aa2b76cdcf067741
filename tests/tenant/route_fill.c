/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what own_fill() of a library gets: the one that it is linked with, or loads by itself. */
#include <dlfcn.h>
#include <stdio.h>

#include "tests/tenant/own_names.h"

typedef int fill_fn(void);

int main(int argc, char **argv)
{
#ifdef FILL_LINKED
	printf("%d\n", own_fill());
	return 0;
#else
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	fill_fn *fill = library ? (fill_fn *)dlsym(library, "own_fill") : NULL;

	if (!fill) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	printf("%d\n", fill());
	return 0;
#endif
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the driver by name, for programs of tests. */
#include "tests/tenant/client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *client_find(const char *symbol)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *function = library ? dlsym(library, symbol) : NULL;

	if (!function) {
		fprintf(stderr, "client: the driver has no %s\n", symbol);
		exit(69);
	}
	return function;
}

bool client_is_replaced(const char *symbol)
{
	Dl_info info;

	return dladdr(client_find(symbol), &info) && strstr(info.dli_fname, "libvgpu");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what each way of looking up leads the library to that this is compiled into. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tenant/own_names.h"

static void ask_print(const char *who, const char *name, void *found)
{
	const char *error = dlerror(), *file;
	Dl_info info;

	if (!found || !dladdr(found, &info)) {
		printf("%s %s: none, %s\n", who, name, error ? "told" : "not told");
		return;
	}
	file = strrchr(info.dli_fname, '/') + 1;
	/* where a library is preloaded, its functions are to stand for the driver's */
	printf("%s %s: %s\n", who, name,
		strstr(file, getenv("LD_PRELOAD") ? "libvgpu" : "libcuda") ? "driver" : file);
}

/* Each asks in a frame of its own, so that no question is a tail call. */
#define ASK(who, name)                                                                \
	do {                                                                          \
		ask_print(who " default", name, dlsym(RTLD_DEFAULT, name));           \
		ask_print(who " next", name, dlsym(RTLD_NEXT, name));                 \
		ask_print(who " version", name, dlvsym(RTLD_DEFAULT, name, "OWN_1")); \
	} while (0)

#define ASK_ALL(who)                          \
	do {                                  \
		ASK(who, "curl_easy_init");   \
		ASK(who, "cuckoo");           \
		ASK(who, "nvmlOwn");          \
		ASK(who, "cuMemAlloc_v2");    \
		ASK(who, "cuMemFree_v2");     \
		ASK(who, "cuMemGetInfo_v2");  \
		ASK(who, "cuNoSuchFunction"); \
	} while (0)

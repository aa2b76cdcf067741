/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints which symbol each question to the driver's doors leads to, for comparing a run under the
 * tenant library with one without it: the two tables must be the same, line for line. With
 * "owners" it prints instead in which library the function lies that each hooked name gives.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/abi/cuda.h"

static const char *const symbols[] = {
#define ENTRY(symbol, base, version, form) #symbol,
#include "sim/cuda/entry.def"
#undef ENTRY
};
static const char *const bases[] = {
#define ENTRY(symbol, base, version, form) #base,
#include "sim/cuda/entry.def"
#undef ENTRY
	"cuNoSuchFunction",
	"cuMemAlloc_v2",
	"cuMemAllocAsync_ptsz",
	"curl_easy_init",
	"",
};
static const char *const hooked[] = {
#define HOOK(symbol) #symbol,
#define CALL(symbol)
#include "gpu/cuda.def"
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Versions at which an answer changes, and some between them. */
static const int versions[] = {2000, 3020, 4000, 6000, 7000, 8000, 9000, 10000, 10020, 11000, 11020,
	11030, 11040, 11060, 11070, 11080, 12000, 12010, 12020, 12050, 12080, 13000, 13010};

static void *addresses[COUNT(symbols)];

static const char *name_of(void *address)
{
	if (!address)
		return "-";
	for (unsigned i = 0; i < COUNT(symbols); i++)
		if (addresses[i] == address)
			return symbols[i];
	return "other";
}

static bool is_repeated(unsigned i)
{
	return i > 0 && strcmp(bases[i], bases[i - 1]) == 0;
}

static void print_v1(cuGetProcAddress_fn *get, const char *base, int version, cuuint64_t flags)
{
	void *found = NULL;
	CUresult r = get(base, &found, version, flags);

	printf("v1 %s %d %d: %d %s\n", base, version, (int)flags, (int)r, name_of(found));
}

static void print_v2(cuGetProcAddress_v2_fn *get, const char *base, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	void *found = NULL, *unasked = NULL;
	CUresult r = get(base, &found, version, flags, &status);
	CUresult without = get(base, &unasked, version, flags, NULL);

	printf("v2 %s %d %d: %d %s status %d, without status %d %s\n", base, version, (int)flags,
		(int)r, name_of(found), (int)status, (int)without, name_of(unasked));
}

static int print_owners(void *library)
{
	Dl_info info;

	for (unsigned i = 0; i < COUNT(hooked); i++) {
		void *at = dlsym(library, hooked[i]);
		const char *slash;

		if (!at || !dladdr(at, &info)) {
			printf("%s absent\n", hooked[i]);
			continue;
		}
		slash = strrchr(info.dli_fname, '/');
		printf("%s %s\n", hooked[i], slash ? slash + 1 : info.dli_fname);
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	cuGetProcAddress_fn *v1;
	cuGetProcAddress_v2_fn *v2;

	if (!library)
		return 1;
	if (argc > 1)
		return print_owners(library);
	for (unsigned i = 0; i < COUNT(symbols); i++)
		addresses[i] = dlsym(library, symbols[i]);
	v1 = (cuGetProcAddress_fn *)dlsym(library, "cuGetProcAddress");
	v2 = (cuGetProcAddress_v2_fn *)dlsym(library, "cuGetProcAddress_v2");
	if (!v1 || !v2)
		return 2;
	for (unsigned i = 0; i < COUNT(symbols); i++)
		printf("dlsym %s: %s\n", symbols[i], name_of(addresses[i]));
	for (unsigned i = 0; i < COUNT(bases); i++)
		for (unsigned v = 0; v < COUNT(versions) && !is_repeated(i); v++)
			for (cuuint64_t flags = 0; flags < 4; flags++) {
				print_v1(v1, bases[i], versions[v], flags);
				print_v2(v2, bases[i], versions[v], flags);
			}
	return 0;
}

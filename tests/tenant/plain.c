/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has nothing to do with CUDA. It prints what a guest might have changed in it; the
 * output with the tenant library must be that without it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned entries_of(const char *path)
{
	DIR *dir = opendir(path);
	unsigned entries = 0;

	while (dir && readdir(dir))
		entries++;
	if (dir)
		closedir(dir);
	return entries;
}

static void print_lines_with(const char *path, const char *const *words)
{
	FILE *file = fopen(path, "r");
	char line[1024];

	while (file && fgets(line, sizeof(line), file))
		for (unsigned i = 0; words[i]; i++)
			if (strstr(line, words[i]))
				fputs(line, stdout);
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	static const char *const status[] = {
		"SigBlk", "SigIgn", "SigCgt", "Threads", "Umask", NULL};
	static const char *const drivers[] = {"libcuda", "libnvidia", "cudevshr", NULL};
	static const char *const names[] = {"cuInit", "cuMemAlloc_v2", "cuGetProcAddress_v2",
		"nvmlInit_v2", "nvmlDeviceGetMemoryInfo", "curl_easy_init", "cudaMalloc",
		"cublasCreate", "cuckoo", "nvmlNoSuch", "no_such_function"};
	void *self = dlopen(NULL, RTLD_NOW);

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		dlerror();
		printf("%s:%s", names[i], dlsym(RTLD_DEFAULT, names[i]) ? " default" : "");
		printf("%s", dlerror() ? " error" : "");
		printf("%s", dlsym(RTLD_NEXT, names[i]) ? " next" : "");
		printf("%s\n", dlsym(self, names[i]) ? " self" : "");
	}
	printf("malloc %d\n", dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
	printf("puts twice %d\n",
		dlsym(RTLD_NEXT, "puts") && dlsym(RTLD_NEXT, "puts") == dlsym(RTLD_NEXT, "puts"));
	printf("versions %d %d %d\n", dlvsym(RTLD_NEXT, "puts", "GLIBC_2.2.5") != NULL,
		dlvsym(RTLD_NEXT, "puts", "GLIBC_2.17") != NULL,
		dlvsym(RTLD_DEFAULT, "puts", "NO_SUCH") != NULL);
	print_lines_with("/proc/self/status", status);
	print_lines_with("/proc/self/maps", drivers);
	printf("descriptors %u\n", entries_of("/proc/self/fd"));
	for (int i = 1; i < argc; i++)
		printf("%s %u\n", argv[i], entries_of(argv[i]));
	return 0;
}

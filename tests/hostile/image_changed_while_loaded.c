/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second thread changes the text of a module, in memory and in a file, after the library has read it and before the
 * driver has: a managed variable of 1 KiB becomes one of 4 GiB, which NVML does not show.
 *
 * What was loaded stayed uncharged: 4.5 GiB in a slice of 2 GiB. Now the driver gets the copy that was read.
 */
#include <pthread.h>
#include <string.h>

#include "tests/hostile/hostile.h"

static char text[HOSTILE_CODE_BYTES];
static char path[64];
static const char *slow_file;

static void write_file(void)
{
	FILE *file = fopen(path, "w");

	MUST(!file);
	MUST(fputs(text, file) < 0);
	MUST(fclose(file));
}

static void put_size(const char *size)
{
	memcpy(strstr(text, "data[") + strlen("data["), size, strlen(size));
}

static void *change(void *argument)
{
	usleep(25000);
	put_size("0x100000000");
	if (slow_file)
		write_file();
	return NULL;
}

static void try(const char *file)
{
	struct hostile_code code = {
		.variables = ".global .attribute(.managed) .align 4 .b8 data[0x000000400];"};
	pthread_t thread;
	CUmodule module;

	hostile_ptx(&code, text);
	slow_file = file;
	if (file)
		write_file();
	MUST(pthread_create(&thread, NULL, change, NULL));
	if ((file ? cuModuleLoad(&module, file) : cuModuleLoadData(&module, text)) == CUDA_SUCCESS)
		hostile_look();
	MUST(pthread_join(thread, NULL));
}

static void attack(void)
{
	snprintf(path, sizeof(path), "/tmp/hostile-image-%d", (int)getpid());
	hostile_begin();
	try(NULL);
	try(path);
	unlink(path);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuModuleLoadData", "cuModuleLoad"},
					  .is_slow_only = true,
					  .attack = attack});
}

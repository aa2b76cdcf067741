/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that take their sign of life away. */
#include "tests/hostile/signless.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROCESSES   3
#define BLOCK_BYTES (64 * MIB)
#define BLOCKS	    24
#define MAPPINGS    64

struct mapping {
	unsigned long start, end;
};

/* The region's, and segments of System V shared memory; read before any is unmapped, as that changes the file. */
static int find(struct mapping found[MAPPINGS])
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	MUST(!file);
	while (count < MAPPINGS && fgets(line, sizeof(line), file))
		if ((strstr(line, "/region") || strstr(line, "/SYSV")) &&
			sscanf(line, "%lx-%lx", &found[count].start, &found[count].end) == 2)
			count++;
	fclose(file);
	return count;
}

void signless_unmap(void)
{
	struct mapping found[MAPPINGS];
	int count = find(found);

	for (int i = 0; i < count; i++)
		MUST(munmap((void *)found[i].start, found[i].end - found[i].start));
}

static void run(int tell_fd, void (*prepare)(void))
{
	CUdeviceptr block;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prepare)
		prepare();
	if (hostile_try_begin())
		for (int i = 0; i < BLOCKS; i++)
			cuMemAlloc_v2(&block, BLOCK_BYTES);
	signless_unmap();
	MUST(write(tell_fd, "x", 1) != 1);
	for (;;)
		pause();
}

void signless_attack_after(void (*prepare)(void))
{
	int told[2];
	char byte;

	MUST(pipe(told));
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		if (pid == 0)
			run(told[1], prepare);
		MUST(pid < 0 || read(told[0], &byte, 1) != 1);
	}
	hostile_look();
}

void signless_attack(void)
{
	signless_attack_after(NULL);
}

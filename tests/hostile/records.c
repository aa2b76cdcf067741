/* SPDX-License-Identifier: Apache-2.0 */
/* Turn records that lie. */
#include "tests/hostile/records.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define USER	54321
#define TURN_NS (100 * MS)

uint64_t records_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool enter_device(void)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	bool is_in = false;

	MUST(!dir);
	while (!is_in && (entry = readdir(dir)))
		is_in = strncmp(entry->d_name, "GPU-", 4) == 0 && chdir(entry->d_name) == 0;
	closedir(dir);
	return is_in;
}

static void enter_folder(void)
{
	MUST(!getenv("HOSTILE_TURNS"));
	while (chdir(getenv("HOSTILE_TURNS")) < 0 || !enter_device())
		served_sleep(MS);
}

void records_enter_as(unsigned user)
{
	if (geteuid() == 0)
		MUST(setuid(USER + user));
	enter_folder();
}

void records_enter(void)
{
	records_enter_as(0);
}

static struct turn_record *map(const char *name, int access)
{
	int fd = open(name, access, 0644), protection = PROT_READ;
	void *at;

	MUST(fd < 0);
	if (access != O_RDONLY) {
		MUST(ftruncate(fd, sizeof(struct turn_record)) < 0);
		protection |= PROT_WRITE;
	}
	at = mmap(NULL, sizeof(struct turn_record), protection, MAP_SHARED, fd, 0);
	MUST(at == MAP_FAILED);
	close(fd);
	return at;
}

struct turn_record *records_make(const char *name)
{
	struct turn_record *record = map(name, O_RDWR | O_CREAT);

	record->face.magic = TURN_MAGIC;
	return record;
}

void records_make_all(struct turn_record **ret_records, int count)
{
	char name[16];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		ret_records[i] = records_make(name);
	}
}

/* The library adds a number that nobody knows beforehand to the slice's name. */
static struct turn_record *find(const char *slice, int access)
{
	struct turn_record *record = NULL;
	struct dirent *entry;
	DIR *dir = opendir(".");

	MUST(!dir);
	while (!record && (entry = readdir(dir)))
		if (strncmp(entry->d_name, slice, strlen(slice)) == 0 &&
			entry->d_name[strlen(slice)] == '.')
			record = map(entry->d_name, access);
	closedir(dir);
	MUST(!record);
	return record;
}

struct turn_record *records_left(void)
{
	enter_folder();
	return find("s0", O_RDWR);
}

struct turn_record *records_own(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (int i = 0; i < 200; i++)
		served_launch(kernel, NULL, MS / 10);
	return records_left();
}

void records_beside_work(void (*lie)(struct turn_record *record))
{
	struct turn_record *record = records_own();
	CUfunction kernel = served_kernel();
	pid_t pid = fork();

	MUST(pid < 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		lie(record);
	}
	for (;;)
		served_launch(kernel, NULL, MS / 2);
}

void records_start_work(uint64_t kernel_ns)
{
	CUfunction kernel;
	pid_t pid = fork();

	MUST(pid < 0);
	if (pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	served_begin();
	kernel = served_kernel();
	for (;;)
		served_launch(kernel, NULL, kernel_ns);
}

const struct turn_record *records_of(const char *slice)
{
	return find(slice, O_RDONLY);
}

void records_say(struct turn_record *record, enum turn_state state, uint32_t rank, uint64_t ns)
{
	uint64_t now_ns = records_now_ns();

	record->face.rank = rank;
	record->face.ticket_ns = state == TURN_WANT ? 1 : now_ns;
	record->face.since_ns = now_ns;
	record->face.seen_ns = now_ns;
	record->face.word = TURN_WORD(state, state == TURN_FREE ? 0 : now_ns + ns);
}

void records_hold_again(struct turn_record *record)
{
	for (;;) {
		uint64_t since_ns = records_now_ns();

		while (records_now_ns() < since_ns + TURN_NS) {
			records_say(record, TURN_HOLD, 0, 10 * MS);
			record->face.since_ns = since_ns;
			served_sleep(MS);
		}
		records_say(record, TURN_FREE, 0, 0);
		served_sleep(MS);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process. */
#include "region/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define PF_EXITING    0x4u	  /* include/linux/sched.h; field 9 of /proc/PID/stat */
#define FIRST_PID_NS  4026531836u /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define FIELD_FLAGS   9
#define FIELD_THREADS 20
#define FIELD_START   22

static void stat_path(pid_t pid, char *ret_path)
{
	char digits[12], *at = digits + sizeof(digits);
	unsigned value = (unsigned)pid;

	memcpy(ret_path, "/proc/", 6);
	ret_path += 6;
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	memcpy(ret_path, at, (size_t)(digits + sizeof(digits) - at));
	ret_path += digits + sizeof(digits) - at;
	memcpy(ret_path, "/stat", 6);
}

static uint64_t number(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

/* The command may hold spaces and brackets: the fields begin behind the last closing one. */
static int parse_stat(char *text, struct process_identity *ret_identity)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')'), state;
	uint64_t threads = 0, flags = 0;
	size_t length;
	int field = 3;

	if (!open || !close || close < open || close[1] != ' ')
		return -ESRCH;
	length = (size_t)(close - open - 1);
	if (length >= sizeof(ret_identity->command))
		length = sizeof(ret_identity->command) - 1;
	memset(ret_identity->command, 0, sizeof(ret_identity->command));
	memcpy(ret_identity->command, open + 1, length);
	state = close[2];
	for (char *at = close + 2; *at; field++) {
		if (field == FIELD_FLAGS)
			flags = number(at);
		if (field == FIELD_THREADS)
			threads = number(at);
		if (field == FIELD_START)
			ret_identity->start_time = number(at);
		at = strchr(at, ' ');
		if (!at)
			break;
		at++;
	}
	ret_identity->is_gone = (state == 'Z' || state == 'X') && threads <= 1;
	ret_identity->is_leaving = flags & PF_EXITING;
	return 0;
}

static int read_stat(const char *path, struct process_identity *ret_identity)
{
	char text[1024];
	size_t length;

	if (file_read(path, text, sizeof(text), &length) < 0)
		return -ESRCH;
	return parse_stat(text, ret_identity);
}

int process_identify(pid_t pid, struct process_identity *ret_identity)
{
	struct process_identity id = {.pid = pid};
	char path[32];
	int r;

	stat_path(pid, path);
	r = read_stat(path, &id);
	if (r == 0)
		*ret_identity = id;
	return r;
}

void process_identify_self(struct process_identity *ret_identity)
{
	struct process_identity id = {.pid = getpid()};

	/* Not by the PID: the /proc that we see may be another namespace's. */
	if (read_stat("/proc/self/stat", &id) != 0)
		id.start_time = 0;
	id.pid_namespace = process_own_namespace();
	*ret_identity = id;
}

uint64_t process_own_namespace(void)
{
	return process_read_namespace("/proc/self/ns/pid");
}

uint64_t process_read_namespace(const char *link)
{
	char target[64];
	ssize_t length = readlink(link, target, sizeof(target) - 1);
	char *bracket;

	if (length < 0)
		return 0;
	target[length] = '\0';
	bracket = strchr(target, '[');
	return bracket ? number(bracket + 1) : 0;
}

bool process_is_in_first_namespace(const struct process_identity *identity)
{
	return identity->pid_namespace == FIRST_PID_NS;
}

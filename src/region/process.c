/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process. */
#include "region/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define PF_EXITING    0x4u	  /* include/linux/sched.h; field 9 of /proc/PID/stat */
#define FIRST_PID_NS  4026531836u /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define PROC_MAGIC    0x9fa0	  /* PROC_SUPER_MAGIC, linux/magic.h */
#define FIELD_FLAGS   9
#define FIELD_THREADS 20
#define FIELD_START   22

#define STATUS_BYTES  1024 /* of /proc/PID/status at a time: a line of groups may be much longer */

#define LIST_BYTES    1024 /* of a list of threads at a time */
#define THREADS_MAX   8192 /* are looked at: a program that keeps more ended ones holds nobody up */

#define PATH_BYTES    64

/* An entry of a folder, as getdents64() has it. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

/* Returns the end of what it wrote. */
static char *append(char *to, const char *text)
{
	size_t length = strlen(text);

	memcpy(to, text, length + 1);
	return to + length;
}

static char *append_number(char *to, pid_t number)
{
	char digits[12] = "", *at = digits + sizeof(digits) - 1;
	unsigned value = (unsigned)number;

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return append(to, at);
}

static void path_of(pid_t pid, const char *file, char *ret_path)
{
	append(append_number(append(ret_path, "/proc/"), pid), file);
}

static void path_of_thread(pid_t pid, const char *thread, const char *file, char *ret_path)
{
	path_of(pid, "/task/", ret_path);
	append(append(ret_path + strlen(ret_path), thread), file);
}

static uint64_t number(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

/* The command may hold spaces and brackets: the fields begin behind the last closing one. is_leaving is the first thread's, or the only one's. */
static int parse_stat(char *text, struct process_identity *ret_identity, uint64_t *ret_threads)
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
	*ret_threads = threads;
	return 0;
}

/* Without a descriptor or memory of ours nothing was looked at. */
static int explain(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM ? r : -ESRCH;
}

static int read_stat(const char *path, struct process_identity *ret_identity, uint64_t *ret_threads)
{
	char text[1024];
	size_t length;

	int r = file_read(path, text, sizeof(text), &length);

	return r < 0 ? explain(r) : parse_stat(text, ret_identity, ret_threads);
}

/* What a walk over a process's threads found. */
struct walk {
	pid_t living;	/* the first that does not end; 0: there was none */
	uint64_t ended; /* of those before */
	uint64_t
		names; /* by which threads they were: their numbers in one, in the order of the list */
};

/* -EMFILE, -ENFILE or -ENOMEM; one that has gone meanwhile counts as nothing. */
static int look_at_thread(pid_t pid, const char *thread, struct walk *walk)
{
	struct process_identity seen = {.pid = pid};
	char path[PATH_BYTES];
	uint64_t ignored;
	int r;

	if (*thread == '.' || strlen(thread) > 10)
		return 0;
	path_of_thread(pid, thread, "/stat", path);
	r = read_stat(path, &seen, &ignored);
	if (r == 0 && seen.is_leaving) {
		walk->ended++;
		walk->names = (walk->names ^ number(thread)) * 0x100000001b3;
	} else if (r == 0)
		walk->living = (pid_t)number(thread);
	return r == -ESRCH ? 0 : r;
}

/* No opendir(): it takes memory, and this runs in programs that have none. */
static int walk_threads(pid_t pid, struct walk *ret_walk)
{
	char list[LIST_BYTES] __attribute__((aligned(8))), path[PATH_BYTES];
	_cleanup_fd_ int fd = -1;
	long got = 0;
	int r = 0;

	*ret_walk = (struct walk){0};
	path_of(pid, "/task", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? -ESRCH : -errno;
	while (r == 0 && !ret_walk->living && ret_walk->ended < THREADS_MAX &&
		(got = syscall(SYS_getdents64, fd, list, sizeof(list))) > 0)
		for (long at = 0; r == 0 && !ret_walk->living && at < got;) {
			const struct entry *e = (const struct entry *)(list + at);

			r = look_at_thread(pid, e->name, ret_walk);
			at += e->length;
		}
	/* Who cannot read the list has not seen that none lives. */
	if (r == 0 && got < 0)
		r = errno == ENOENT || errno == ESRCH ? -ESRCH : -errno;
	return r;
}

/*
 * A thread of the process that does not end, where the first one does; 0 where none lives. The list breaks off at a thread that goes while it
 * is read, and threads begin others as they end. So none lives only where the same ones were seen to end before and after the process had just
 * so many: these were all. Where that is not to be seen, the process counts as living: pid.
 */
static int find_thread(pid_t pid, pid_t *ret_thread)
{
	struct process_identity again = {.pid = pid};
	struct walk before = {0}, walk;
	uint64_t threads = 0;
	char path[PATH_BYTES];

	path_of(pid, "/stat", path);
	for (uint64_t looks = 0; looks < THREADS_MAX; looks += walk.ended + 1) {
		int r = walk_threads(pid, &walk);

		if (r < 0)
			return r;
		*ret_thread = walk.living;
		if (walk.living ||
			(walk.ended && walk.ended == threads && walk.ended == before.ended &&
				walk.names == before.names))
			return 0;
		before = walk;
		r = read_stat(path, &again, &threads);
		if (r < 0 || (again.is_leaving && threads <= 1))
			return r;
	}
	*ret_thread = pid;
	return 0;
}

static bool (*gate)(pid_t pid);

void process_set_gate(bool (*may_look)(pid_t pid))
{
	gate = may_look;
}

/* *ret_thread: by which /proc shows what the process has; 0 where nothing does. */
static int identify(pid_t pid, struct process_identity *ret_identity, pid_t *ret_thread)
{
	struct process_identity id = {.pid = pid};
	char path[PATH_BYTES];
	uint64_t threads;
	int r;

	if (gate && !gate(pid))
		return -EACCES;
	path_of(pid, "/stat", path);
	r = read_stat(path, &id, &threads);
	*ret_thread = id.is_leaving ? 0 : pid;
	if (r == 0 && id.is_leaving && threads > 1)
		r = find_thread(pid, ret_thread);
	id.is_leaving = !*ret_thread;
	if (r == 0)
		*ret_identity = id;
	return r;
}

int process_identify(pid_t pid, struct process_identity *ret_identity)
{
	pid_t ignored;

	return identify(pid, ret_identity, &ignored);
}

pid_t process_find_thread(pid_t pid)
{
	struct process_identity ignored;
	pid_t thread;

	return identify(pid, &ignored, &thread) == 0 && thread ? thread : pid;
}

/* Not by the PID: the /proc that we see may be another namespace's. */
static int read_own_stat(struct process_identity *ret_identity)
{
	uint64_t ignored;
	int r = read_stat("/proc/self/stat", ret_identity, &ignored);

	ret_identity->is_leaving = false; /* who asks lives */
	return r;
}

void process_identify_self(struct process_identity *ret_identity)
{
	struct process_identity id = {.pid = getpid()};

	if (read_own_stat(&id) != 0)
		id.start_time = 0;
	id.pid_namespace = process_own_namespace();
	id.time_namespace = process_own_time_namespace();
	*ret_identity = id;
}

/* Who cannot ask does not take it for absent. */
static bool proc_is_there(void)
{
	struct statfs s;

	if (statfs("/proc", &s) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return s.f_type == PROC_MAGIC;
}

int process_know_self(struct process_identity *ret_identity)
{
	struct process_identity id;
	int r = 0;

	process_identify_self(&id);
	if (id.pid <= 0)
		return -ESRCH;
	if ((!id.start_time || !id.pid_namespace) && proc_is_there())
		/* Most often descriptors are missing, and are so still. */
		r = read_own_stat(&id);
	if (r == 0 && (!id.start_time || !id.pid_namespace) && proc_is_there())
		r = -ESRCH;
	if (r == 0)
		*ret_identity = id;
	return r;
}

bool process_can_look(void)
{
	struct process_identity me;

	return read_own_stat(&me) == 0 || !proc_is_there();
}

int process_read_status(const char *path, const char *title, char ret_line[PROCESS_LINE_BYTES])
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t kept = 1, title_length = strlen(title);
	char text[STATUS_BYTES] = "\n";
	ssize_t got = 0;

	*ret_line = '\0';
	if (fd < 0)
		return -errno;
	while ((got = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		size_t length = kept + (size_t)got;
		char *at, *line;

		text[length] = '\0';
		at = strstr(text, title);
		line = at ? at + title_length : NULL;
		if (at && (strchr(line, '\n') || strlen(line) >= PROCESS_LINE_BYTES)) {
			length = min_u64(strcspn(line, "\n"), PROCESS_LINE_BYTES - 1);
			memcpy(ret_line, line, length);
			ret_line[length] = '\0';
			return 0;
		}
		/* The title may have come in part. */
		kept = at ? length - (size_t)(at - text)
			  : (length < title_length ? length : title_length);
		memmove(text, text + length - kept, kept);
	}
	return got < 0 ? -errno : 0;
}

static int read_peak(const char *path, uint32_t *ret_mib)
{
	char line[PROCESS_LINE_BYTES];
	int r = process_read_status(path, "\nVmPeak:", line);

	if (r == 0)
		*ret_mib = (uint32_t)(number(line + strspn(line, " \t")) / 1024); /* of KiB */
	return r;
}

bool process_proc_is_own(void)
{
	static const char status[] = "/proc/self/status";
	char line[PROCESS_LINE_BYTES];

	/* One for each PID namespace from that of /proc down to ours. */
	if (process_read_status(status, "\nNSpid:\t", line) < 0)
		return false;
	if (*line)
		return !strchr(line, '\t');
	/* Kernels before 4.1 have no such line. */
	return process_read_status(status, "\nPid:\t", line) == 0 &&
	       (pid_t)number(line) == getpid();
}

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

bool process_has_ended(pid_t pid)
{
	_cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};

	if (fd >= 0)
		return poll(&end, 1, 0) == 1;
	return errno == ESRCH || (getpgid(pid) < 0 && errno == ESRCH);
}

uint32_t process_peak_mib(pid_t pid)
{
	char path[PATH_BYTES];
	uint32_t mib;

	path_of(process_find_thread(pid), "/status", path);
	return read_peak(path, &mib) == 0 ? mib : 0;
}

int process_own_peak_mib(uint32_t *ret_mib)
{
	int r = read_peak("/proc/self/status", ret_mib);

	if (r == 0 || proc_is_there())
		return r;
	*ret_mib = 0;
	return 0;
}

int process_raise_own_peak(uint32_t *ret_mib)
{
	/* The kernel's own call: ThreadSanitizer ends a program that maps so much by the library's. */
	for (uint64_t size = PROCESS_PEAK_BYTES; size >= PROCESS_PEAK_LEAST_BYTES; size /= 2) {
		long room = syscall(SYS_mmap, NULL, size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

		if (room == -1)
			continue;
		syscall(SYS_munmap, room, size);
		break;
	}
	return process_own_peak_mib(ret_mib);
}

uint64_t process_own_namespace(void)
{
	return process_read_namespace("/proc/self/ns/pid");
}

uint64_t process_own_time_namespace(void)
{
	return process_read_namespace("/proc/self/ns/time");
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
	/* The kernel's numbers are of 32 bits. */
	return bracket ? (uint32_t)number(bracket + 1) : 0;
}

bool process_is_in_first_namespace(const struct process_identity *identity)
{
	return identity->pid_namespace == FIRST_PID_NS;
}

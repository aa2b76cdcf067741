/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process, read by one that can be given up. */
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "node/look.h"

#define WAIT_MS	      200 /* for the next of its messages */
#define SHORT_WAIT_MS 10  /* once several have not answered */
#define SHORT_AFTER   8
#define ALL_MS	      3000 /* for all that is read of one file: 64 MiB of mappings take 0.3 s */
#define GOOD_NS	      UINT64_C(20000000) /* the last answer, in which all is read of a process */
#define PATH_BYTES    96
#define TEXT_BYTES    16384 /* of a message */
#define END_MS \
	20 /* a process that was killed ends, but for kernels before 5.3, where it may wait on */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define FDS_OF_OLD_KERNELS 1024

static struct {
	pid_t process; /* of ours; 0: none */
	pid_t owner;   /* who began it */
	int fd;
	bool is_heard; /* of our end */
	pid_t last;
	uint64_t last_until_ns;
} probe;

enum what { OPENS, READS, NAMES };

struct question {
	enum what what;
	size_t most; /* bytes to be read */
	char path[PATH_BYTES];
};

/* The last of a file has neither an error nor text; with a name comes the descriptor. */
struct answer {
	int error;
	unsigned length;
	char text[TEXT_BYTES];
};
#define ANSWER_HEAD offsetof(struct answer, text)

static bool tell(struct answer *a, const int *named_fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.room = {0}};
	struct iovec part = {.iov_base = a, .iov_len = ANSWER_HEAD + a->length};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (named_fd) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&control.head), named_fd, sizeof(int));
	}
	return sendmsg(0, &m, MSG_NOSIGNAL) >= 0;
}

static bool tell_text(int fd, size_t most)
{
	static struct answer a;
	ssize_t got;

	do {
		size_t size = most < sizeof(a.text) ? most : sizeof(a.text);

		got = size ? read(fd, a.text, size) : 0;
		a.error = got < 0 ? errno : 0;
		a.length = got < 0 ? 0 : (unsigned)got;
		most -= a.length;
		if (!tell(&a, NULL))
			return false;
	} while (got > 0);
	return true;
}

static bool answer_one(const struct question *q)
{
	_cleanup_fd_ int fd = open(q->path, (q->what == NAMES ? O_PATH : O_RDONLY) | O_CLOEXEC);
	struct answer a = {.error = fd < 0 ? errno : 0};

	if (fd >= 0 && q->what == READS)
		return tell_text(fd, q->most);
	return tell(&a, fd >= 0 && q->what == NAMES ? &fd : NULL);
}

/* Holds nothing that is this process's: neither its output nor its locks. */
static void __attribute__((noreturn)) answer(int fd)
{
	struct question q;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fd, 0);
	if (syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
		for (int i = 1; i < FDS_OF_OLD_KERNELS; i++)
			close(i);
	while (recv(0, &q, sizeof(q), 0) == sizeof(q) && answer_one(&q))
		;
	_exit(0);
}

/* One that does not end now is waited for when the next one begins: nothing else of ours begins without a signal at its end. */
static void wait_for_end(pid_t process)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < END_MS && waitpid(process, NULL, __WALL | WNOHANG) == 0; i++)
		nanosleep(&pause, NULL);
}

void probe_end(void)
{
	/* A child of fork() has its parent's, which it could not wait for. */
	if (!probe.process || probe.owner != getpid())
		return;
	kill(probe.process, SIGKILL);
	close(probe.fd);
	wait_for_end(probe.process);
	probe.process = 0;
}

/* Without a signal at its end, of which the program that vgpu run waits for has the only one. */
static bool begin(void)
{
	int fds[2];

	if (probe.process && probe.owner == getpid())
		return true;
	while (waitpid(-1, NULL, __WCLONE | WNOHANG) > 0)
		;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	probe.process = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
	if (probe.process == 0)
		answer(fds[1]);
	close(fds[1]);
	if (probe.process > 0) {
		probe.fd = fds[0];
		probe.owner = getpid();
		/* Else who reaps no children, as PID 1 of a container, would have it for ever. */
		if (!probe.is_heard)
			probe.is_heard = atexit(probe_end) == 0;
		return true;
	}
	probe.process = 0;
	close(fds[0]);
	return false;
}

/* False where nobody can be asked: then it is looked at as ever. */
static bool ask(enum what what, const char *path, size_t most)
{
	struct question q = {.what = what, .most = most};

	if (strlen(path) >= sizeof(q.path) || !begin())
		return false;
	strcpy(q.path, path);
	if (send(probe.fd, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q))
		return true;
	probe_end();
	return false;
}

/* One message, with the descriptor that may come with it, or -1. -ETIMEDOUT where it does not come, -EPIPE where the process has ended. */
static int hear(struct answer *ret_answer, int *ret_fd)
{
	struct pollfd told = {.fd = probe.fd, .events = POLLIN};
	int wait_ms = look_stuck_count(NULL) < SHORT_AFTER ? WAIT_MS : SHORT_WAIT_MS, r;
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(sizeof(size_t))));
	struct iovec part = {.iov_base = ret_answer, .iov_len = sizeof(*ret_answer)};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	const struct cmsghdr *c;

	do
		r = poll(&told, 1, wait_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return -ETIMEDOUT;
	if (recvmsg(probe.fd, &m, MSG_CMSG_CLOEXEC) < (ssize_t)ANSWER_HEAD)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	*ret_fd = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return 0;
}

static bool probe_answers(pid_t pid)
{
	char path[PATH_BYTES];
	struct answer a;
	int fd, r;

	if (pid == probe.last && clock_now_ns() < probe.last_until_ns)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	r = ask(OPENS, path, 0) ? hear(&a, &fd) : 0;
	if (r < 0)
		probe_end();
	if (r == -ETIMEDOUT)
		return false;
	probe.last = pid;
	probe.last_until_ns = clock_now_ns() + GOOD_NS;
	return true;
}

/* Puts it behind the text, and two zero bytes behind that. */
static int append(const struct answer *a, char **text, size_t *length, size_t *capacity)
{
	if (*length + a->length + 2 > *capacity) {
		char *more = realloc(*text, 2 * *capacity + sizeof(a->text) + 2);

		if (!more)
			return -ENOMEM;
		*text = more;
		*capacity = 2 * *capacity + sizeof(a->text) + 2;
	}
	memcpy(*text + *length, a->text, a->length);
	*length += a->length;
	(*text)[*length] = (*text)[*length + 1] = '\0';
	return 0;
}

static int probe_read(const char *path, size_t most, char **ret_text, size_t *ret_length)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0, capacity = 0;
	uint64_t end_ns = clock_now_ns() + ALL_MS * UINT64_C(1000000);
	struct answer a;
	int fd, r;

	if (!ask(READS, path, most + 1))
		return look_read_here(path, most, ret_text, ret_length);
	do {
		r = hear(&a, &fd);
		if (r == 0)
			r = append(&a, &text, &length, &capacity);
		if (r == 0 && a.length && clock_now_ns() > end_ns)
			r = -ETIMEDOUT;
	} while (r == 0 && a.length);
	/* It may be about to say more. */
	if (r < 0)
		probe_end();
	if (r < 0 || a.error)
		return r < 0 ? r : -a.error;
	if (length > most)
		return -EFBIG;
	*ret_length = length;
	*ret_text = text;
	text = NULL;
	return 0;
}

static int probe_name(const char *path, int *ret_fd)
{
	struct answer a;
	int fd = -1, r;

	if (!ask(NAMES, path, 0)) {
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	} else {
		r = hear(&a, &fd);
		if (r < 0)
			probe_end();
		if (r < 0 || a.error)
			return r < 0 ? r : -a.error;
		/* all descriptors are in use: it came without */
		if (fd < 0)
			return -EMFILE;
	}
	*ret_fd = fd;
	return 0;
}

const struct look_helper probe_helper = {probe_answers, probe_read, probe_name};

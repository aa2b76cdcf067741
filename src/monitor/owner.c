/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container that a process is in.
 *
 *	0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<UID>.slice/cri-containerd-<mark>.scope
 *	4:memory:/kubepods/burstable/pod<UID>/<mark>
 *	0::/../../pod<UID>/<mark>				(seen from a control group namespace)
 *
 * Before the pod stand only the kubelet's own names: a user of the host may have control groups of any name below his own. What
 * stands behind the container is the container's.
 */
#include "monitor/owner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define GROUPS_BYTES 8192
#define UID_LEAST    32

/* "pod<UID>", or "kubepods-burstable-pod<UID>.slice", which has '_' for '-'. */
static bool read_pod(const char *name, size_t length, char *ret_uid, size_t size)
{
	const char *end = name + length, *uid;
	size_t count = 0;

	if (length > 6 && !strncmp(end - 6, ".slice", 6))
		end -= 6;
	uid = end;
	while (uid > name && strchr("0123456789abcdef-_", uid[-1]))
		uid--;
	/* of "pod" the 'd' may be a digit, too */
	if (uid > name && uid[-1] == 'o')
		uid++;
	if (uid - name < 3 || strncmp(uid - 3, "pod", 3) != 0 ||
		(uid - name > 3 && strncmp(name, "kubepods", 8) != 0) ||
		(size_t)(end - uid) < UID_LEAST || (size_t)(end - uid) >= size)
		return false;
	for (; uid < end; uid++)
		ret_uid[count++] = *uid == '_' ? '-' : *uid;
	ret_uid[count] = '\0';
	return true;
}

/* "<mark>", or "cri-containerd-<mark>.scope". */
static bool read_mark(const char *name, size_t length, char *ret_mark, size_t size)
{
	const char *end = name + length, *mark;

	if (length > 6 && !strncmp(end - 6, ".scope", 6))
		end -= 6;
	mark = end;
	while (mark > name && mark[-1] != '-')
		mark--;
	if (mark == end || (size_t)(end - mark) >= size)
		return false;
	memcpy(ret_mark, mark, (size_t)(end - mark));
	ret_mark[end - mark] = '\0';
	return true;
}

static bool is_kubelets(const char *name, size_t length)
{
	return (length == 2 && !strncmp(name, "..", 2)) ||
	       (length >= 4 && !strncmp(name, "kube", 4)) ||
	       (length == 9 && !strncmp(name, "burstable", 9)) ||
	       (length == 10 && !strncmp(name, "besteffort", 10));
}

static bool parse_path(const char *path, size_t length, struct owner *ret_owner)
{
	const char *end = path + length;

	while (path < end && *path == '/') {
		const char *name = path + 1;
		size_t bytes = strcspn(name, "/\n");

		path = name + bytes;
		if (read_pod(name, bytes, ret_owner->uid, sizeof(ret_owner->uid)))
			return *path == '/' && read_mark(path + 1, strcspn(path + 1, "/\n"),
						       ret_owner->mark, sizeof(ret_owner->mark));
		if (!is_kubelets(name, bytes))
			return false;
	}
	return false;
}

bool owner_parse(const char *text, struct owner *ret_owner)
{
	struct owner owner = {.uid = ""}, other;

	for (const char *line = text; *line; line += *line == '\n') {
		size_t length = strcspn(line, "\n");
		const char *path = memchr(line, ':', length);

		path = path ? memchr(path + 1, ':', length - (size_t)(path + 1 - line)) : NULL;
		if (path && parse_path(path + 1, length - (size_t)(path + 1 - line), &other)) {
			if (*owner.uid && (strcmp(owner.uid, other.uid) != 0 ||
						  strcmp(owner.mark, other.mark) != 0))
				return false;
			owner = other;
		}
		line += length;
	}
	*ret_owner = owner;
	return *owner.uid != '\0';
}

int owner_read(pid_t pid, struct process_identity *ret_process, struct owner *ret_owner)
{
	struct process_identity again;
	char path[64], text[GROUPS_BYTES];
	size_t length;
	int r = process_identify(pid, ret_process);

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)process_find_thread(pid));
	if (!r)
		r = file_read(path, text, sizeof(text), &length);
	/* both are of one process */
	if (!r)
		r = process_identify(pid, &again);
	if (r && r != -ENOENT)
		return r;
	if (r || again.start_time != ret_process->start_time || again.is_gone || again.is_leaving)
		return -ESRCH;
	return owner_parse(text, ret_owner) ? 0 : -ENOENT;
}

/* The descriptor names the process whatever becomes of its PID, so what is read after it was opened is that process's. */
int owner_end(const struct process_identity *process, const struct owner *owner)
{
	struct process_identity now;
	struct owner its;
	_cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = owner_read(process->pid, &now, &its);
	if (r)
		return r == -ENOENT ? -ESRCH : r;
	if (now.start_time != process->start_time || strcmp(its.uid, owner->uid) != 0 ||
		strcmp(its.mark, owner->mark) != 0 || process->pid == getpid())
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0 ? -errno : 0;
}

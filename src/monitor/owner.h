/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container that a process is in, by the kernel's word: the control group that the kubelet has made for it. No process
 * of a container can choose another one's.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bits.h"
#include "monitor/pods.h"
#include "region/process.h"

struct owner {
	char uid[64];		   /* of the pod */
	char mark[POD_MARK_BYTES]; /* of the container, as the runtime has it */
};

/* Of the text of /proc/PID/cgroup; false: it is in no pod's, or its hierarchies do not agree. */
bool owner_parse(const char *text, struct owner *ret_owner);

/*
 * The process as it is now, and its container. -ESRCH where it is gone or about to go, -ENOENT where it is in no pod, -errno where it cannot be looked at.
 */
int owner_read(pid_t pid, struct process_identity *ret_process, struct owner *ret_owner) MUST_CHECK;

/*
 * Ends the process by SIGKILL where it is still that process in that container. -ESRCH where it is not; -errno.
 */
int owner_end(const struct process_identity *process, const struct owner *owner) MUST_CHECK;

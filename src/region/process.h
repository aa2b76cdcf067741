/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"

struct process_identity {
	pid_t pid;
	uint64_t
		start_time; /* clock ticks since boot: with the PID, a name that is not used twice */
	uint64_t pid_namespace; /* inode number; 0 where it cannot be read */
	char command[16];
	bool is_gone;	 /* a zombie with no thread left: it holds nothing any more */
	bool is_leaving; /* the kernel is taking it down */
};

/* -ESRCH where there is no such process, or /proc does not show it. pid_namespace is left 0. */
int process_identify(pid_t pid, struct process_identity *ret_identity) MUST_CHECK;

/* This process; fields that /proc does not give are 0. */
void process_identify_self(struct process_identity *ret_identity);

/* Inode number of this process's PID namespace; 0 where it cannot be read. */
uint64_t process_own_namespace(void);

/* The same of the namespace that the link in /proc names. */
uint64_t process_read_namespace(const char *link);

/* Whether the process is in the machine's first PID namespace, so that its PID is the host's. */
bool process_is_in_first_namespace(const struct process_identity *identity);

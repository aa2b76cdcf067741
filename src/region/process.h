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
	uint64_t pid_namespace;	 /* inode number; 0 where it cannot be read */
	uint64_t time_namespace; /* the same; /proc shifts start_time by the reader's */
	char command[16];
	bool is_gone; /* a zombie with no thread left: it holds nothing any more */
	bool is_leaving; /* the kernel is taking it down: no thread of it lives, not only the first one ends */
};

/*
 * -ESRCH where there is no such process, or /proc does not show it; -EMFILE, -ENFILE, -ENOMEM, or what
 * keeps its threads from being listed, where it was not looked at; -EACCES where the gate says so. The namespaces are left 0.
 */
int process_identify(pid_t pid, struct process_identity *ret_identity) MUST_CHECK;

/*
 * The number by which /proc shows a process's memory, environment, files and namespaces: that of a thread that lives, where the first one has
 * ended, whose own are empty; else pid. It is good for as long as that thread lives.
 */
pid_t process_find_thread(pid_t pid);

/* Who is asked before any process but this one is looked at: /proc/PID/stat waits for an exec that may never end. NULL: nobody. */
void process_set_gate(bool (*may_look)(pid_t pid));

/* This process; fields that /proc does not give are 0. */
void process_identify_self(struct process_identity *ret_identity);

/*
 * The same, for who is to be told from others by it: -errno where /proc is there and does not tell all of it. Where there is no /proc,
 * the fields that it gives are 0. A kernel without time namespaces (before 5.6) leaves that one 0.
 */
int process_know_self(struct process_identity *ret_identity) MUST_CHECK;

/* Whether this thread can look at processes, or has no /proc: where it has one and sees not even itself, what it does not find may be there. */
bool process_can_look(void);

/* Whether /proc is of this process's PID namespace: another one shows other processes by the PIDs of ours, or none. */
bool process_proc_is_own(void);

/* The kernel's word, without /proc, of a process in our PID namespace: one that nobody has waited for has ended. */
bool process_has_ended(pid_t pid);

/*
 * The line of a process's status that begins with the title, or as much of it as there is room for, without the title; "" where there is none.
 * The title begins with the end of the line before. -errno where that cannot be read.
 */
#define PROCESS_LINE_BYTES 64
int process_read_status(
	const char *path, const char *title, char ret_line[PROCESS_LINE_BYTES]) MUST_CHECK;

/*
 * The most address space that the process has had since its last exec, in MiB, whatever it unmapped since; 0 where /proc does not tell.
 * No call of a program makes it less.
 */
uint32_t process_peak_mib(pid_t pid);
/* The same of this process: -errno where /proc is there and cannot be read. 0 MiB where there is none, or it does not name a peak. */
int process_own_peak_mib(uint32_t *ret_mib) MUST_CHECK;

/*
 * Raises this process's own by address space that is given back at once, and tells it as above. A program that it executes later has less, unless
 * that has as much of its own. Where the process may not have so much, it is half of that, and so on, down to PROCESS_PEAK_LEAST_BYTES.
 */
#define PROCESS_PEAK_BYTES	 (UINT64_C(32) << 40)
#define PROCESS_PEAK_LEAST_BYTES (UINT64_C(64) << 20)
int process_raise_own_peak(uint32_t *ret_mib) MUST_CHECK;

/* Inode number of this process's PID namespace; 0 where it cannot be read. */
uint64_t process_own_namespace(void);
/* The same of its time namespace. */
uint64_t process_own_time_namespace(void);

/* The same of the namespace that the link in /proc names. */
uint64_t process_read_namespace(const char *link);

/* Whether the process is in the machine's first PID namespace, so that its PID is the host's. */
bool process_is_in_first_namespace(const struct process_identity *identity);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu as root beside users who mean harm: what they make is not believed, not followed, not opened.
 *
 * The tests run as root, in processes and with /run, /tmp and /dev/shm of their own, so that no other test is seen. Two users, by
 * numbers that no machine has. What is waited for is a condition, and a test fails where it does not come.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define ALICE 54321
#define BOB   54322

/*
 * Functions of the shell: to wait until a command is true, or until a process runs a program and sleeps in it (it has its name
 * before its arguments and environment); a user's command; a slice of hers.
 */
#define BY                                                                           \
	"by() { n=0; until eval \"$1\"; do n=$((n + 1)); [ $n -lt 2000 ] || { echo " \
	"\"waited in vain: $1\" >&2; return 1; }; sleep 0.01; done; }\n"             \
	"runs() { by \"grep -qsx '$2' /proc/$1/comm && grep -qs ^State:.S /proc/$1/status\"; }\n"
#define AS                                                                                        \
	BY "as() { who=$1; shift; setpriv --reuid \"$who\" --regid \"$who\" --clear-groups -- "   \
	   "\"$@\"; }\n"                                                                          \
	   "slice() { as \"$1\" sh -c 'umask 077; mkdir -p \"/tmp/vgpu-$1/$2\" && "               \
	   "cd \"/tmp/vgpu-$1/$2\" && : >lock && printf \"vgpu-share 1\\nslice $2\\n"             \
	   "region $PWD/region\\ndevice * memory 1073741824\\nend\\n\" >share' - \"$1\" \"$2\"; " \
	   "}\n"                                                                                  \
	   "A=54321 B=54322\n"

/*
 * A program that maps a file as a region is, runs a command, and stays until it may end; and functions that wait for it and let
 * it end. Its file is a region of Alice's.
 */
#define MAPS                                                       \
	"ready() { by 'test -e /tmp/x/ready'; }\n"                 \
	"look() { ready; \"$VGPU\" list --all 2>&1 | "             \
	"grep -o '^[0-9]*/*train\\|^[0-9]*/*region\\|^vgpu: .*'; " \
	": >/tmp/x/end; wait; rm -f /tmp/x/ready /tmp/x/end; }\n"
void users_begin_maps(void);

/* cmocka's fixtures: of the group, and of each test. */
int users_set_up(void **state);
int users_clear(void **state);

/* Ends the test as failed when the deadline has passed, and else lets a moment pass. */
uint64_t users_deadline(void);
void users_pause(uint64_t deadline_ns);

/*
 * Starts a process of that user, which ends with this one. It calls begin and waits; users_start() returns when that has returned, with
 * what it said (begin may be NULL: 0). Where again is not NULL, it is called all the time from then on.
 */
struct user_process {
	int (*begin)(void *context);
	void (*again)(void *context);
	void *context;
};
pid_t users_start(uid_t user, const struct user_process *what, int *ret_outcome);
void users_end(pid_t pid);

/* Runs the tests where this machine lets it; 77 with a reason where not. */
int users_main(int (*run)(void));

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a test that use a device beside each other. Times are those of events, which follow from the turns and
 * not from how busy the machine of the test is.
 */
#pragma once

#include "sim/tests/cuda/child.h"

#define MS UINT64_C(1000000)

/* What the processes of a test tell each other. */
struct notes {
	int ready;
	int stop;
	CUipcEventHandle event;
};
extern struct notes *notes;

/* Before the test's first child; start_neighbour() does it. */
void share_notes(void);
void tell(int *what);
void await(const int *what, int value);
void nap(void);

/* A kernel that takes as long as it is told, in the current context; and with the primary context of device 0. */
CUfunction load_spin(void);
CUfunction begin(void);
void spin(CUfunction function, CUstream stream, uint64_t duration_ns);

/* How long so much work takes, in pieces, by its events. */
float time_work(CUfunction function, int pieces, uint64_t piece_ns);

/* A neighbour with work for longer than any test; it is killed, or told to stop. */
int start_neighbour(void);
void end_neighbour(int pid);

/* Until the next look. */
const struct machine_snapshot *look(uint64_t window_ns);

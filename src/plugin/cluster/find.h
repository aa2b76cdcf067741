/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pod that the kubelet asks for: what is known of the cluster is brought up to date, and then it is chosen. */
#pragma once

#include <stdbool.h>

#include "plugin/cluster/choose.h"
#include "plugin/cluster/cluster.h"
#include "plugin/cluster/record.h"

/* The words are for the kubelet, which shows them with the pod. */
struct find_result {
	enum choice choice; /* CHOICE_POD, CHOICE_NOBODY or CHOICE_MISMATCH */
	struct pod *pod;    /* NULL for CHOICE_NOBODY */
	const char *words;
};

/* The caller sets the first three; all else is zero at the start. One search at a time. */
struct find {
	const struct cluster *cluster;
	void (*done)(void *context, const struct find_result *result);
	void *context;
	unsigned slices;
	struct kube_call *call;
	struct record record;
	struct loop_timer begun, settled;
	struct node_lock lock; /* as it was when the kubelet asked */
	uint64_t
		read_for; /* the batch of the pod without a lock for which it was read again; 0: none */
	struct err why;
	char asked_space[64], asked_name[254]; /* the pod that the server was asked for last */
	bool is_searching, knows_lock, is_settled;
};

/* Begins; done() comes later. */
void find_begin(struct find *find, unsigned slices);

/* The pods have changed. */
void find_look_again(struct find *find);

/* Ends without done(). */
void find_cancel(struct find *find);

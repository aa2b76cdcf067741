/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's own record of what each container has been given, from its socket for pod resources. It is asked before
 * a pod is chosen; where it does not answer, its word is missing, and nothing else.
 */
#pragma once

#include <stdbool.h>

#include "plugin/cluster.h"

/* All else is zero at the start. */
struct record {
	const struct cluster *cluster;
	void (*done)(void *context);
	void *context;
	struct rpc_request *request; /* NULL: nothing is asked */
	bool is_missed;		     /* said once */
};

/* Enters the record in the pods (has_slices) and calls done(), later. False: nobody is there to be asked. */
bool record_read(struct record *record);

/* Ends without done(). */
void record_cancel(struct record *record);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's own record of what each container has been given, from its socket for pod resources. It is asked before
 * a pod is chosen; where it does not answer, its word is missing, and nothing else.
 */
#pragma once

#include <pod_resources.pb-c.h>
#include <stdbool.h>

#include "plugin/cluster/cluster.h"
#include "plugin/host/prepare.h"

/* All else is zero at the start. */
struct record {
	const struct cluster *cluster;
	void (*done)(void *context);
	void *context;
	struct rpc_request *request;	      /* NULL: nothing is asked */
	V1__ListPodResourcesResponse *answer; /* NULL: there is none */
	bool is_missed;			      /* said once */
};

/* Asks, and calls done(), later. False: nobody is there to be asked. */
bool record_read(struct record *record);

/* Enters the answer, where there is one, in the pods that are known now (is_unlisted, has_slices). */
void record_enter(const struct record *record);

/* Pods with slices that the answer has and that are not known. The list is the caller's to free, its texts are the answer's. */
int record_list_unknown(
	const struct record *record, struct prepare_name **ret_names, size_t *ret_count) MUST_CHECK;

/* Ends without done(); the answer is forgotten. */
void record_cancel(struct record *record);

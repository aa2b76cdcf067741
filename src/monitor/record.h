/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's own record of what each container has been given, from its socket for pod resources.
 *
 * It is asked by libcurl, which speaks HTTP/2 anyway: a program of gRPC's library alone holds 9 MiB, and this one may hold 15.
 */
#pragma once

#include <pod_resources.pb-c.h>

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct record;

/* came() is called once after each record_ask(): with the answer, or NULL, where none came in time. */
struct record_settings {
	const char *socket_path;
	void (*came)(void *context, const V1__ListPodResourcesResponse *answer);
	void *context;
};

/* The settings must live as long. -ENOMEM with err set. */
int record_new(struct loop *loop, const struct record_settings *settings,
	struct record **ret_record, struct err *err) MUST_CHECK;

/* Without came(). Accepts NULL. */
void record_free(struct record *record);

/* Asks, where nothing is under way. A socket that is not there is no fault: came() is called from here with NULL. */
void record_ask(struct record *record);

/* The answer of last time, which is good until the loop goes on; NULL: none came. Accepts NULL. */
const V1__ListPodResourcesResponse *record_answer(const struct record *record);

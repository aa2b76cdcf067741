/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon in a loop of its own, from its start until it is told to end. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct service {
	int (*start)(struct loop *loop, const void *settings, void **ret_daemon, struct err *err);
	void (*stop)(void *daemon);
};

/*
 * Until SIGTERM or SIGINT, which stay blocked; before the process has other threads, which would not have them blocked. A client
 * that has gone is to be seen by the write that fails: SIGPIPE is the caller's to ignore. Below 0 with err set.
 */
int service_run(const struct service *service, const void *settings, struct err *err) MUST_CHECK;

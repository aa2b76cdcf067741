/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's extender and webhook as a whole. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "scheduler/settings.h"

struct daemon;

/*
 * Begins, with the API server that KUBECONFIG or the pod's service account names. One that is away is waited for. The
 * settings must live as long. -EINVAL, -ENOENT, -EADDRINUSE, -ENOMEM with err set.
 */
int daemon_start(struct loop *loop, const struct settings *settings, struct daemon **ret_daemon,
	struct err *err) MUST_CHECK;

/* Accepts NULL. */
void daemon_stop(struct daemon *daemon);

/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler serves by HTTP, and to whom. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "scheduler/extender.h"

struct server;

/* -EADDRINUSE, -EACCES, -EINVAL, -ENOENT, -ENOMEM with err set. */
int server_start(struct extender *extender, struct server **ret_server, struct err *err) MUST_CHECK;

/* Accepts NULL. */
void server_stop(struct server *server);

/* Takes the certificate's files anew where they have changed. */
void server_renew(struct server *server);

/*
 * The certificate, as PEM texts, where the settings name no files but a secret. Until the first comes, nothing but metrics is
 * served.
 */
void server_take_certificate(struct server *server, const char *certificate, const char *key);

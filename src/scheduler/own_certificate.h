/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The webhook's certificate, which the replicas make themselves and share by a Secret.
 *
 * The first to come creates it, and the others take what is there. Whichever finds it too old renews it, at the version that it
 * has read, so that of two that do one has to read again. Then the authority is told to the API server.
 */
#pragma once

#include <stdint.h>

#include "base/bits.h"
#include "kube/client.h"

struct own_certificate;

struct own_certificate_request {
	const char *secret; /* "NAMESPACE/NAME" */
	const char *
		configuration; /* of mutating webhooks, which get the authority; "": nobody is told */
	const char *hosts;     /* as authority.h has them */
	uint64_t life_ns;
};

/* There is one, or another: PEM texts. Comes from the loop. */
typedef void own_certificate_fn(void *context, const char *certificate, const char *key);

/* The request's texts must live as long. -EINVAL with err set; -ENOMEM. */
int own_certificate_start(struct kube_client *client, const struct own_certificate_request *request,
	own_certificate_fn *take, void *context, struct own_certificate **ret_own,
	struct err *err) MUST_CHECK;

/* Accepts NULL. */
void own_certificate_stop(struct own_certificate *own);

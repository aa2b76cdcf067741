/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's registration with the kubelet: a server on a socket beside the kubelet's, and a request there,
 * made anew whenever the kubelet comes back, which has removed our socket then and forgotten us.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "plugin/service.h"

struct kubelet;

struct kubelet_request {
	const char *socket_path; /* the kubelet's */
	const char *
		resource_name; /* "nvidia.com/gpu"; the socket is named after what is behind the slash */
	bool is_preferring; /* said with the registration, which kubelets do not heed */
};

/*
 * Begins; a kubelet that is away is waited for. The request's texts and the service are the caller's and must live as long.
 * -EINVAL or -ENOMEM with err set.
 */
int kubelet_start(struct loop *loop, struct rpc *rpc, const struct kubelet_request *request,
	struct service *service, struct kubelet **ret_kubelet, struct err *err) MUST_CHECK;

/* Ends the server and removes its socket. Accepts NULL. */
void kubelet_stop(struct kubelet *kubelet);

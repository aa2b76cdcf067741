/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's answers to the kubelet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/rpc.h"

#define SERVICE_WATCHERS 8 /* a kubelet has one, and a short time two */

/* The caller sets the list, packed by slices_pack(), which stays his. All else is zero at the start. */
struct service {
	const uint8_t *list;
	size_t list_bytes;
	struct rpc_call *watchers[SERVICE_WATCHERS];
};

/* The methods; their context is a struct service. */
extern const struct rpc_service service_methods;

/* After the server has ended: it told nobody that the calls went. */
void service_forget_watchers(struct service *service);

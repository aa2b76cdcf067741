/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's answers to the kubelet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/rpc.h"
#include "plugin/allocate.h"

#define SERVICE_WATCHERS 8 /* a kubelet has one, and a short time two */

/* All is zero at the start. */
struct service {
	uint8_t *list;
	size_t list_bytes;
	struct rpc_call *watchers[SERVICE_WATCHERS];
	struct allocate *allocate;   /* NULL: nothing is handed out */
	void (*left)(void *context); /* NULL; the last that watched does so no more */
	void *left_context;
};

/* The methods; their context is a struct service. */
extern const struct rpc_service service_methods;

/* The list of slices, packed by slices_pack(), which is the service's then: all that watch are told. */
void service_set_list(struct service *service, uint8_t *list, size_t bytes);

/* After the server has ended: it told nobody that the calls went. */
void service_forget_calls(struct service *service);

/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests of what the plugin prepares: a folder in memory with a library, and requests. One at a time. */
#pragma once

#include "plugin/host/prepare.h"

#define DEVICE_A "GPU-11111111-2222-3333-4444-555555555555"
#define DEVICE_B "GPU-99999999-2222-3333-4444-555555555555"
#define POD	 "0b5e7d7a-4f39-4d0c-9d3e-0f6a9a7b1c11"
#define OTHER	 "0b5e7d7a-4f39-4d0c-9d3e-0f6a9a7b1c22"

struct host {
	char root[64], hook[128], state[128], shares[160], turns[128], lock[128], library[128];
	struct prepare_settings settings;
};
extern struct host host;
extern const struct prepare_name host_name; /* of all its pods */

/* Makes it, with the library of version "1" installed. */
void host_make(void);
void host_remove(void);

/* cmocka's; they do no more than that. */
int host_setup(void **state);
int host_teardown(void **state);

/* The share of a container with a GiB of a device. */
struct share host_share(const char *pod_uid, const char *container);

/* What the plugin does; none of it may fail. */
struct prepared host_prepare(const char *pod_uid, const char *container);
struct prepared host_prepare_as(const struct prepare_request *request);
void host_restore(void);
void host_collect(const char *const *pod_uids, size_t count); /* NULL: there are none */
void host_collect_pods(const struct prepare_pods *pods);

/* Makes all that is kept look so old. */
void host_age(unsigned seconds);

/* Makes all that is kept look as if the machine had been restarted since. */
void host_forget_boot(void);

/* Makes all that is kept look as if an earlier version had kept it. */
void host_forget_name(void);

/* Names in a folder of the host, hidden ones too. */
unsigned host_count(const char *folder);

/* The type and the mode of a file, which this user owns. */
unsigned host_mode(const char *path);

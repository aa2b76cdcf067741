/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program on a simulated node, before a kubelet and an API server of the test's own. One at a time; what it prints goes to
 * a file.
 */
#pragma once

#include <device_plugin.pb-c.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "net/loop.h"
#include "net/rpc.h"
#include "tests/plugin/apiserver.h"

#define STAGE_NODE	 "node1"
#define STAGE_LOCK	 "hami.io/mutex.lock"
#define STAGE_REGISTER	 "hami.io/node-nvidia-register"
#define STAGE_PATH_BYTES 512

struct stage_answer {
	V1beta1__AllocateResponse *message; /* NULL where it was refused */
	bool is_done;
	int status;
	char words[512];
};

struct stage {
	struct loop *loop;
	struct rpc *rpc;
	struct rpc_server *kubelet;
	struct apiserver api;
	pid_t plugin;
	char folder[256], hook[300]; /* in it */
	/* of the last registration */
	unsigned registrations;
	bool was_registered, is_preferring;
	char resource[64], endpoint[64], version[16];
	/* of ListAndWatch; NULL: nothing was said */
	struct rpc_request *watch;
	V1beta1__ListAndWatchResponse *list;
	bool was_listed;
};
extern struct stage stage;

/* program and library are files of the build; state is cmocka's. */
int stage_begin(void **state, const char *program, const char *library);
int stage_end(void **state);

/* A file in the folder; NULL removes it. */
void stage_write(const char *name, const char *text);
char *stage_path(const char *name); /* one at a time */

/* device-config.yaml; the turns and daemons of this folder are behind it. */
void stage_configure(const char *device, const char *node);

/* Starts it with more flags, up to NULL, and waits until it has registered; or does not wait. */
void stage_start(const char *const *flags);
void stage_spawn(const char *const *flags);

/* Its exit status; below 0: it was killed. */
int stage_stop(int signal);

void stage_run(unsigned ms);

/* What happened to pods so far is known to the program then. Nothing where it does not run. */
void stage_tell(void);
void stage_wait(const bool *flag, unsigned most_s);

/* Waits at most so long until claim() says yes. */
void stage_await(bool (*claim)(void), unsigned most_s);

/* As the kubelet does when it starts: it removes the sockets of plugins, and makes its own. */
void stage_restart_kubelet(void);

/* Whether what it has printed has these words. */
bool stage_has_said(const char *words);

/* Follows the list of slices. */
void stage_watch(void);

/* One container's request; the caller frees what is in the answer. */
void stage_allocate(const char *const *ids, unsigned count, struct stage_answer *answer);

/*
 * A pod of one container is bound with its lock: slots is its reservation, limits are its container's, as JSON. Then it
 * goes.
 */
void stage_bind(const char *name, const char *uid, const char *slots, const char *limits);
void stage_unbind(const char *name, const char *phase);

/* Of the first container of an answer; NULL where there is none. */
const char *stage_env(const struct stage_answer *answer, const char *name);
const V1beta1__Mount *stage_mount(const struct stage_answer *answer, const char *at);
void stage_answer_free(struct stage_answer *answer);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An API server over HTTP with one node and its pods: gets, lists, watches and patches of annotations. It loses nothing; for
 * what real servers and networks do, see tests/kube/server.h and tests/plugin/town.h.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

struct apiserver {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t acceptor;
	json_t *node, *pods, *events; /* pods by their names, all of namespace "default" */
	int listen_fd;
	unsigned port, connections, watches; /* of these, those that follow pods */
	size_t watch_count, last_watch,
		told; /* the last's number, 0: none; up to which event it has told */
	bool is_over;
	bool is_watch_late; /* it says nothing */
	unsigned reads;	    /* of single pods */
	bool loses_patches; /* with the connection they came by, before they are done */
};

void apiserver_start(struct apiserver *server, const char *node_name);
void apiserver_stop(struct apiserver *server);

/* Takes the object over; a pod of that name is replaced. */
void apiserver_put_pod(struct apiserver *server, json_t *pod);
void apiserver_set_status(struct apiserver *server, const char *pod, const char *phase);
void apiserver_delete_pod(struct apiserver *server, const char *name);

void apiserver_lose_patches(struct apiserver *server, bool is_losing);

/* What happens from now on is told by the watch when it is not late any more. */
void apiserver_delay_watch(struct apiserver *server, bool is_late);
unsigned apiserver_reads(struct apiserver *server);

/* NULL removes it. */
void apiserver_annotate_node(struct apiserver *server, const char *key, const char *value);

/* The next program's watch is another. */
void apiserver_forget_watch(struct apiserver *server);

/* Whether what happened so far is written to the last watch's connection, where that is not late. */
bool apiserver_has_told(struct apiserver *server);

/* Whether all requests of a program that has ended were carried out, or lost. */
bool apiserver_has_heard(struct apiserver *server);

/* A copy, which the caller frees; NULL where there is none. Of the node, where the pod is NULL. */
char *apiserver_annotation(struct apiserver *server, const char *pod, const char *key);

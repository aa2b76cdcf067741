/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor as a whole: it looks at the node's containers, tells metrics, and tells containers whether they may work. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct monitor_settings {
	const char *metrics_bind;  /* "ADDRESS:PORT"; "": nowhere */
	const char *page_bind;	   /* likewise; "": there is no page */
	const char *hook;	   /* the folder in which `containers` is */
	const char *node;	   /* this node's name in the cluster; "": there is no cluster */
	const char *nvml;	   /* NVML's path; NULL: the machine's own */
	const char *shares;	   /* the folder with the share file of each container */
	const char *pod_resources; /* the kubelet's socket for pod resources; "": it is not asked */
	const char *resource;	   /* by which containers ask for slices */
	unsigned ended;		   /* for what processes are ended: bits of enum audit_kind */
	unsigned audit_s;	   /* between audits */
	bool has_legacy;
};

struct monitor;

/* 0; -errno with err set. The settings must live as long. */
int monitor_start(struct loop *loop, const struct monitor_settings *settings,
	struct monitor **ret_monitor, struct err *err) MUST_CHECK;

/* Accepts NULL. */
void monitor_stop(struct monitor *monitor);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's figures against what containers were granted.
 *
 * Three things are nobody's word but the kernel's and the driver's: which processes are on a device (NVML), which container each
 * is in (its control group), and what it takes. What a container may take says its share file, which is root's. The
 * region, which its processes can write, is asked for one thing: whether a process is part of its own container's slice. So no
 * container can bring another one into trouble.
 */
#pragma once

#include <stdio.h>

#include "gpu/nvml.h"
#include "monitor/pods.h"
#include "monitor/scan.h"

enum audit_kind {
	AUDIT_UNTRACKED, /* a process of a container with a slice is on the device, and not part of the slice */
	AUDIT_MEMORY,  /* the container's processes hold more than its quota */
	AUDIT_COMPUTE, /* they keep the device busy beyond the slice's cap */
	AUDIT_BOOKS, /* the kubelet gave the container other slices than it has here, or its pod's annotation says */
	AUDIT_KINDS
};

struct audit_finding {
	enum audit_kind kind;
	const struct pod_name *pod;
	const char *container, *device_uuid; /* the latter is "" for AUDIT_BOOKS */
	const char *sentence; /* for people; the same for as long as nothing changes */
	bool is_ended;	      /* the process was */
};

struct audit_settings {
	unsigned ended; /* bit i: for a finding of kind i a process is ended */
	/* Something was found, or goes on to be found after some minutes. */
	void (*found)(void *context, const struct audit_finding *finding);
	void *context;
};

struct audit;

/* The settings must live as long. -ENOMEM. */
int audit_new(const struct audit_settings *settings, struct audit **ret_audit) MUST_CHECK;

/* Accepts NULL. */
void audit_free(struct audit *audit);

/* One audit, some seconds after the one before. */
void audit_look(struct audit *audit, struct scan *scan, const struct inventory *devices,
	const struct nvml_driver *nvml, const struct pod_names *pods);

/*
 * One comparison with the kubelet's record: audit_books_begin(), each container that it lists, and audit_books_end(). What was found of
 * a container that is not listed is forgotten. sentence: NULL where nothing is wrong.
 */
void audit_books_begin(struct audit *audit);
void audit_books(struct audit *audit, const struct pod_name *pod, const char *container,
	const char *sentence);
void audit_books_end(struct audit *audit);

/* The families vgpu_container_* and vgpu_audit_*. */
void audit_write(const struct audit *audit, const struct pod_names *pods, FILE *out);

/* "untracked,memory,compute" as bits, for which a process can be ended; false: a word is none of these. */
bool audit_parse_kinds(const char *text, unsigned *ret_kinds);

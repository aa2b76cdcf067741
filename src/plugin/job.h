/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the kubelet for slices, and the answer as far as it is known. */
#pragma once

#include <device_plugin.pb-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "net/rpc.h"

struct job {
	struct job *next;
	struct rpc_call *call;		   /* NULL: nobody waits */
	V1beta1__AllocateRequest *request; /* NULL: it is the other */
	V1beta1__PreferredAllocationRequest *preferred;
	size_t at; /* the container request that is under way */
	uint8_t *answer;
	size_t answer_bytes;
	uint64_t began_ns;
};

/* AllocateRequest, or PreferredAllocationRequest. -EINVAL: it is not understood; -ENOMEM. */
int job_new(struct rpc_call *call, bool is_preferred, const void *message, size_t bytes,
	struct job **ret_job) MUST_CHECK;

/* Accepts NULL. */
void job_free(struct job *job);

/* Slices of the container that is under way. */
unsigned job_slices(const struct job *job);

/* The next container's part of the answer. -ENOMEM. */
int job_append(struct job *job, const uint8_t *message, size_t bytes) MUST_CHECK;
int job_append_preferred(struct job *job, const char **ids, size_t count) MUST_CHECK;

/* What is there so far is the answer. Nobody waits after that. */
void job_answer(struct job *job);
void job_refuse(struct job *job, const char *words);

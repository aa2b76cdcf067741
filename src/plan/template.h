/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that a workload (Deployment, Job, ...) would make. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"

#define TEMPLATE_REPLICAS_MOST 10000

struct template
{
	const json_t *workload, *pod;
	int64_t replicas; /* 0: it makes none, or their number is not in it */
};

/* -EINVAL with err set, which names the key. */
int template_read(
	const json_t *workload, struct template *ret_template, struct err *err) MUST_CHECK;

/* One of its pods; NULL: no memory. */
json_t *template_make(const struct template *template, int64_t number);

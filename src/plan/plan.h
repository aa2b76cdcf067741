/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu plan and vgpu explain. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "plan/load.h"
#include "plan/options.h"

enum {
	PLAN_ALL_PLACED = 0,
	PLAN_NOT_ALL = 1, /* something does not fit, or does not wait */
	PLAN_BAD_INPUT = 2,
	PLAN_NO_ANSWER = 3, /* the cluster could not be asked, or the output not written */
};

/* *ret_status is one of these. -errno with err set. */
int plan_show(const struct options *options, struct load *load, int *ret_status,
	struct err *err) MUST_CHECK;
int explain_show(const struct options *options, struct load *load, int *ret_status,
	struct err *err) MUST_CHECK;

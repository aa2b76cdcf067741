/* SPDX-License-Identifier: Apache-2.0 */
/* What is forgotten with a context, and by a child of fork(), part by part. */
#include <stddef.h>

#include "shim/allocations.h"
#include "shim/charge.h"
#include "shim/contexts.h"
#include "shim/local.h"
#include "shim/mapped.h"
#include "shim/nvml.h"
#include "shim/pools.h"
#include "shim/quota.h"
#include "shim/shared.h"
#include "shim/opened.h"
#include "shim/state.h"
#include "shim/truth.h"

void (*const state_forgetters[])(void) = {allocations_forget_parent, charge_forget_parent,
	contexts_forget_parent, local_forget_parent, mapped_forget_parent, nvml_forget_parent,
	pools_forget_parent, quota_forget_parent, shared_forget_parent, opened_forget_parent,
	external_forget_parent, truth_forget_parent, NULL};

void (*const contexts_enders[])(struct device *device, CUcontext context) = {
	allocations_context_ended, local_context_ended, opened_context_ended,
	external_context_ended, NULL};

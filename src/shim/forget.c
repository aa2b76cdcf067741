/* SPDX-License-Identifier: Apache-2.0 */
/* What begins and ends with a context, and what a child of fork() forgets, part by part. */
#include <stddef.h>

#include "shim/allocations.h"
#include "shim/arrays.h"
#include "shim/charge.h"
#include "shim/code.h"
#include "shim/contexts.h"
#include "shim/gate.h"
#include "shim/graphs.h"
#include "shim/leaving.h"
#include "shim/local.h"
#include "shim/managed_data.h"
#include "shim/mapped.h"
#include "shim/neighbours.h"
#include "shim/nvml.h"
#include "shim/oom.h"
#include "shim/opened.h"
#include "shim/oversubscribe.h"
#include "shim/own_pid.h"
#include "shim/pools.h"
#include "shim/quota.h"
#include "shim/shared.h"
#include "shim/state.h"
#include "shim/survey.h"
#include "shim/tiles.h"
#include "shim/truth.h"

void (*const state_forgetters[])(void) = {
	allocations_forget_parent,
	arrays_forget_parent,
	charge_forget_parent,
	code_forget_parent,
	contexts_forget_parent,
	external_forget_parent,
	gate_forget_parent,
	graphs_forget_parent,
	leaving_forget_parent,
	local_forget_parent,
	managed_data_forget_parent,
	mapped_forget_parent,
	neighbours_forget_parent,
	nvml_forget_parent,
	oom_forget_parent,
	opened_forget_parent,
	oversubscribe_forget_parent,
	own_pid_forget_parent,
	pools_forget_parent,
	quota_forget_parent,
	shared_forget_parent,
	survey_forget_parent,
	tiles_forget_parent,
	truth_forget_parent,
	NULL,
};

void (*const contexts_enders[])(struct device *device, CUcontext context) = {
	allocations_context_ended,
	arrays_context_ended,
	code_context_ended,
	external_context_ended,
	gate_context_ended,
	leaving_context_ended,
	local_context_ended,
	managed_data_context_ended,
	opened_context_ended,
	tiles_context_ended,
	NULL,
};

void (*const contexts_beginners[])(void) = {
	code_context_made,
	gate_context_made,
	NULL,
};

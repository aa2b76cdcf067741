/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: what they take of a device, and what goes with them. */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

/* The device whose contexts are to be charged; NULL where the driver is just to be asked. */
CUresult contexts_enter(CUdevice ordinal, struct device **ret_device);

/* Reserves what a context of the device takes, or will take as far as can be told. */
CUresult contexts_reserve(struct device *device, struct charge *ret_charge);

/*
 * A context was made: the charge becomes what it really took, as far as NVML tells, which the
 * slice remembers for its next ones.
 */
void contexts_measure(struct device *device, struct charge *charge);

/* Keeps the charge of a context that the program made, or gives back that of one it destroyed. */
CUresult contexts_keep(CUcontext context, struct charge *charge);
void contexts_destroyed(CUcontext context);

/*
 * The primary context may have come or gone: compares what the driver says with what is charged.
 * charge is what a retain reserved (taken if the context is new), or NULL.
 */
void contexts_compare_primary(struct device *device, CUcontext context, struct charge *charge);

/* Whether the driver says that it holds a primary context of the device in this process. */
bool contexts_primary_is_active(const struct device *device);

/*
 * A green context, used as a context, is a face of its device's primary one: what is allocated while
 * it is current belongs to that (H200, driver 580). The owner of any other context is the context.
 */
void contexts_green_seen(CUgreenCtx green, CUcontext context);
void contexts_green_destroyed(CUgreenCtx green);
CUcontext contexts_owner(CUcontext context);

/* For a child of fork(). */
void contexts_reset_after_fork(void);

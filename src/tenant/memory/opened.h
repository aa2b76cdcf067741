/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other processes that this one opened by a handle of bytes (legacy IPC).
 *
 * A handle that is opened again in a context gives the same pointer and counts; the memory is let go
 * with the last closing, or with the context.
 */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

/* An opening under way. */
struct opening {
	bool is_joint; /* of this slice: held already */
	unsigned joint;
};

/* Before the driver is asked: what this slice knows of the handle. */
void opened_begin(const CUipcMemHandle *handle, struct opening *ret_opening);

/* The driver refused. */
void opened_undo(const struct opening *opening);

/*
 * The driver opened it there. What another slice made is charged; CUDA_ERROR_OUT_OF_MEMORY: it does not
 * fit, and was closed again.
 */
CUresult opened_keep(CUdeviceptr pointer, const struct opening *opening);

/* Whether this closing of the pointer is its last; what was known of it goes to one of the others. */
struct opened {
	CUdeviceptr pointer; /* 0: not the last, or none of ours */
	uint64_t a, b;
	bool is_counted; /* one opening less, and not the last */
};
void opened_close_begin(CUdeviceptr pointer, struct opened *ret_opened);
void opened_close_end(CUdeviceptr pointer, const struct opened *opened, bool is_closed);

void opened_context_ended(struct device *device, CUcontext context);
void opened_reset_after_fork(void);

/* The same two for imported memory of other interfaces (hook_external.c). */
void external_context_ended(struct device *device, CUcontext context);
void external_reset_after_fork(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other processes that this one opened by a handle of bytes (legacy IPC).
 *
 * A handle that is opened again in a context gives the same pointer and counts; the memory is let go
 * with the last closing (holding_end_begin()), or with the context.
 */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

/* An opening under way. */
struct opening {
	bool is_shared; /* of this slice: held already */
	unsigned shared;
	uint64_t since;	  /* charge_since(), before the driver is asked */
	uint64_t current; /* and current_since() */
};

/*
 * Before the driver is asked: what this slice knows of the handle. CUDA_ERROR_NOT_PERMITTED: no process of it has given that out, and
 * its share does not let in others' handles.
 */
CUresult opened_begin(const CUipcMemHandle *handle, struct opening *ret_opening);

/* The driver refused. */
void opened_undo(const struct opening *opening);

/*
 * The driver opened it there. What another slice made is charged; CUDA_ERROR_OUT_OF_MEMORY: it does not
 * fit, or another context was made current meanwhile, and was closed again.
 */
CUresult opened_keep(CUdeviceptr pointer, const struct opening *opening);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams that the driver is asked to end just now. What another thread gives to one of them meanwhile has a state of its handle,
 * and nothing tells that from the state of a stream which is made then and has the handle anew, but the order of these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

struct stream_end {
	CUstream stream;
	uint64_t ticket; /* 0: nothing is to be done */
	bool is_beyond;	 /* there was no place for it */
};

/* Whether a stream of the handle is ended now. */
bool stream_ends_has(CUstream stream);

/* Before the driver is asked, and before the states of the handle are looked for. */
void stream_ends_note(CUstream stream, struct stream_end *ret_end);

/* After it has answered. */
void stream_ends_forget(const struct stream_end *end);

/* The driver has given the handle to a stream that it made: what was of it before is gone. */
void stream_ends_forget_handle(CUstream stream);

/* For a child of fork(). */
void stream_ends_reset_after_fork(void);

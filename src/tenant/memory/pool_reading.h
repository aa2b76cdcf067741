/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool holds, read and booked. */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

struct pool;

/* Bytes that the pool holds, by the driver; false where it does not answer. */
bool pool_reading_ask(const struct pool *p, CUmemoryPool handle, uint64_t *ret_bytes);

/* Reads the pool and books the change; what charge has reserved is part of the growth, or goes back. Takes the pool's lock. */
void pool_reading_book(struct pool *p, struct charge *charge);

/* The same where nothing was reserved. */
void pool_reading_renew(struct pool *p);

/* Whether the pool holds what was read last. Without its lock. */
bool pool_reading_is_same(const struct pool *p);

/*
 * Of what was reserved in the pool's shared allocation so much is taken and stays there, and the rest is this process's again, to be
 * given back. Returns what was taken of it.
 */
int64_t pool_reading_settle(struct charge *charge, uint64_t taken_bytes);

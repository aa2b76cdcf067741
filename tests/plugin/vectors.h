/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of tests/plugin/vectors, with the placeholders filled in, and the inputs that they describe. */
#pragma once

#include <jansson.h>

#include "gpu/inventory.h"
#include "plugin/config.h"

#define VECTOR_UID    "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c11"
#define VECTOR_UNIQUE "6ead0f30-affc-4ab6-937a-e6cb37978d76"
#define VECTORS_MOST  256

struct vectors {
	json_t *all[VECTORS_MOST];
	size_t count;
};

/* Reads the file; ends the test where it cannot. */
void vectors_open(const char *path, struct vectors *ret_vectors);
void vectors_close(struct vectors *vectors);

const char *vector_text(const json_t *vector, const char *key);

/* The devices of the vector's board. */
void vector_read_inventory(const json_t *vector, struct inventory *ret_inventory);

/* The files, flags and environment of the vector; what flags_read() and config_read() say of them. */
int vector_read_config(
	const json_t *vector, struct config **ret_config, struct err *err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of tests/plugin/vectors, with the placeholders filled in, and the inputs that they describe. */
#pragma once

#include <jansson.h>

#include "gpu/inventory.h"
#include "plugin/config/config.h"

#define VECTOR_UID    "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c11"
#define VECTOR_UNIQUE "6ead0f30-affc-4ab6-937a-e6cb37978d76"
#define VECTORS_MOST  256

/* Those of the simulated node's board "h200x2". */
#define VECTOR_GPU0 "GPU-1f0ead19-d94d-4165-a8f0-57b8642c51ab"
#define VECTOR_GPU1 "GPU-c694b1ba-8b50-4581-a929-871f33e6dee0"

struct vectors {
	json_t *all[VECTORS_MOST];
	size_t count;
};

/* Reads the file; ends the test where it cannot. */
void vectors_open(const char *path, struct vectors *ret_vectors);
void vectors_close(struct vectors *vectors);

/* The recording with this id, which has to be there. */
const json_t *vectors_find(const struct vectors *vectors, const char *id);

/* The recorded answer to the pod's request with this number, or NULL where it was refused. */
const json_t *vector_answer(const json_t *vector, size_t number);

const char *vector_text(const json_t *vector, const char *key);

/* The devices of the vector's board. */
void vector_read_inventory(const json_t *vector, struct inventory *ret_inventory);

/* The files, flags and environment of the vector; what flags_read() and config_read() say of them. */
int vector_read_config(
	const json_t *vector, struct config **ret_config, struct err *err) MUST_CHECK;

/* The two files as texts, which the caller frees; *ret_node is NULL where there is none. */
void vector_make_files(const json_t *vector, char **ret_device, char **ret_node);

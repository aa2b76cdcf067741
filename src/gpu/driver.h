/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver: a typed pointer per row of cuda.def and nvml.def, taken from NVIDIA's libraries
 * themselves. Our own code calls the driver through these and in no other way.
 */
#pragma once

#include "gpu/abi/cuda.h"
#include "gpu/abi/nvml.h"

struct cuda_driver {
#define HOOK(s) s##_fn *s;
#define CALL(s) s##_fn *s;
#include "gpu/cuda.def"
};

struct nvml_driver {
#define HOOK(s) s##_fn *s;
#define CALL(s) s##_fn *s;
#include "gpu/nvml.def"
};

/* What only programs of a node ask; every one may be NULL. */
struct nvml_node {
#define CALL(s) s##_fn *s;
#include "gpu/nvml_node.def"
};

/* How a symbol is looked up in a library: dlsym()'s shape. */
typedef void *driver_lookup_fn(void *library, const char *symbol);

/*
 * Fills the table from an opened library. A CALL that the library lacks is NULL; a HOOK that it
 * lacks becomes a function that answers CUDA_ERROR_NOT_FOUND or NVML_ERROR_FUNCTION_NOT_FOUND,
 * so that a program linked against our name gets an error and not a crash.
 */
void driver_load_cuda(void *library, driver_lookup_fn *lookup, struct cuda_driver *ret_driver);
void driver_load_nvml(void *library, driver_lookup_fn *lookup, struct nvml_driver *ret_driver);

void driver_load_nvml_node(void *library, driver_lookup_fn *lookup, struct nvml_node *ret_node);

/* Whether the function is such an answer in place of a missing one. */
int driver_is_absent(const void *function);

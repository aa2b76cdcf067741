/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: modules that have an instance in each context. */
#pragma once

#include "gpu/abi/cuda.h"

struct context;
struct image;
struct module;

/* A library of an image, which stays the caller's on failure. */
CUresult library_new(struct image *image, struct module **ret_library);
/* Ends it with its instances. Under memory_lock. */
void library_end(struct module *library);

/* The module of a library in a context, made at the first need. Under memory_lock. */
CUresult library_instantiate(
	struct module *library, struct context *context, struct module **ret_module);

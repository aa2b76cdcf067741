/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of modules and libraries.
 *
 * The driver makes them with the rest of an image, once in each context, but as managed memory, of
 * which NVML's figure for a process shows nothing. So they are charged by what the image tells, until
 * it is unloaded or the context ends.
 */
#pragma once

#include "tenant/memory/charge.h"

/* Reserves before the image is loaded into the current context; nothing where nothing is enforced. */
CUresult managed_data_begin(uint64_t bytes, struct charge *ret_charge) MUST_CHECK;

/*
 * Keeps the charge for the module or library, unless this context has been charged for it before.
 * False without memory of our own, or where another context was made current meanwhile: then it must be unloaded again.
 */
bool managed_data_keep(const void *owner, struct charge *charge) MUST_CHECK;

/* The module or library was unloaded. */
void managed_data_unloaded(const void *owner);

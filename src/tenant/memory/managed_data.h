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

/*
 * A module or library is being unloaded: from now on its handle has none, as the driver may give it to the next one before we
 * hear of the end. Returns its number, which no other one has, for managed_data_unloaded(); 0: it had none.
 */
uint64_t managed_data_unloading(const void *owner) MUST_CHECK;

/* The driver has answered: is_gone gives back, and else all is the owner's again. */
void managed_data_unloaded(const void *owner, uint64_t number, bool is_gone);

/* The driver has given out a new module or library. What its handle still has is of one that ended unseen: charged until its context ends. */
void managed_data_begin_owner(const void *owner);

/* For a child of fork(). */
void managed_data_reset_after_fork(void);

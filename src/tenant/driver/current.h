/* SPDX-License-Identifier: Apache-2.0 */
/* The context that is current for the calling thread, where a question of ours is one of another context. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"

/*
 * Makes the context current. False where nothing is to be undone: it is current already, it is NULL, or the driver
 * refuses it.
 */
bool current_enter(CUcontext context);

/* Undoes current_enter(), by its answer. */
void current_leave(bool is_entered);

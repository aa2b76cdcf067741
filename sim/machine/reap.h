/* SPDX-License-Identifier: Apache-2.0 */
/* Freeing what dead processes held. */
#pragma once

#include "sim/machine/state_file.h"

/* Frees the slots of dead processes and the kept memory of nobody. Under the lock. Returns how many slots. */
int reap_dead(struct machine *machine);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for another thread's call, for so long at most. While a checkpoint stops the process its calls stay in the driver, for however
 * long: that is not taken for a call that does not return, and the wait begins anew when the process goes on.
 */
#pragma once

#include "base/lock.h"

struct patience {
	uint64_t longest_ns, until_ns;
	uint64_t ask_ns; /* when the driver is asked next whether the process is stopped */
};

struct patience patience_begin(uint64_t longest_ns);
/* Whether it has waited for too long. Asks the driver four times within longest_ns, and not before the first quarter is over. */
bool patience_is_over(struct patience *patience);

/* False where another thread keeps it. */
bool patience_lock(struct lock *lock, uint64_t longest_ns);
/* Waits until a count is 0, in the one order of all sequentially consistent accesses; false: it is not, and has not been for too long. */
bool patience_wait_for_zero(const _Atomic uint32_t *count, struct patience *patience);

/* Whether a checkpoint stops this process's calls now. Never waits where the driver answers such questions while it does. */
bool patience_is_stopped(void);

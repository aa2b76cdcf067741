/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGUSR2 suspends this process, and SIGUSR1 lets it go on: HAMi's tools send them. Only where the
 * program has left them at their default, which would have ended it; see docs/decisions/0017.
 */
#pragma once

#include <stdbool.h>

/* Takes the signals that the program has not claimed, once in a process's life. Keeps errno. */
void signals_take(void);

/* Whether this process was suspended by a signal: nothing new of it may reach a device. */
bool signals_is_suspended(void);

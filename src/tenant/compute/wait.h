/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of work that has to wait (policy/throttle.h). */
#pragma once

#include <stdint.h>

#include "policy/throttle.h"

struct stream_state;

/* Waits until then or until something has changed, without the meter's lock, which is held before and after. */
void wait_until(struct stream_state *s, enum throttle why, uint64_t wake_ns, uint64_t now_ns);

/* Waits while nothing may reach the device, likewise. */
void wait_while_suspended(struct stream_state *s);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc tells of a process, read by one that can be given up.
 *
 * Who waits for another's exec or mmap() (node/look.h) can be ended and not woken. So a process of ours opens the list of its mappings before anything
 * is read of it, and reads itself what the lock of its memory may keep back: mappings, environment, links to mapped files. It
 * is ended where it has not come back in time. A walk over all processes costs one fork, and some messages for each. A user who knows the moment can
 * still let a process stand still in exec between the answer and what else is read then.
 */
#pragma once

#include "node/look.h"

/* For look_begin(). */
extern const struct look_helper probe_helper;

/* Ends that process, if there is one, and waits for it; it begins anew where it is needed. At exit() that is done in any case. */
void probe_end(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether /proc answers of a process.
 *
 * Who waits for another's exec (node/look.h) can be ended and not woken. So a process of ours opens the list of its mappings first, and is ended where
 * it has not come back in time. A walk over all processes costs one fork, and a message for each. A user who knows the moment can still let a
 * process stand still between the answer and what is read then.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* For look_begin(): false where it did not answer in time. */
bool probe_answers(pid_t pid);

/* Ends that process, if there is one, and waits for it; it begins anew where it is needed. At exit() that is done in any case. */
void probe_end(void);

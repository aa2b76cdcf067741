/* SPDX-License-Identifier: Apache-2.0 */
/* Work that waits for the end of a call of the program, when that holds nothing of ours any more (hooks/hook.h). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

extern _Atomic bool call_end_is_awaited;

/* SPDX-License-Identifier: Apache-2.0 */
/* Work that waits for the end of a call of the program. */
#include "tenant/driver/call_end.h"

#include "base/bits.h"

HOT_WORD _Atomic bool call_end_is_awaited;

/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual clock that stands still for ever says who holds it. */
#pragma once

#include "tests/clock/page.h"

#define CLOCK_STILL \
	"TEST_CLOCK_STILL_S" /* environment: after so many seconds of real time; 60 where not given */

/*
 * To be called again and again, with what grows when time goes on. True when it has not for so long, and no thread with a record has
 * run meanwhile, or wanted to. It counts the looks, one a second: what passes while the driver itself gets no processor is no second.
 */
bool still_is_for_ever(struct clock_page *page, unsigned long steps);

/* Prints each record, and where its thread waits; with a star that of the slot for which time waits, less than 0: there is none. */
void still_tell(struct clock_page *page, int slot);

/* None of the processes would end by itself. */
void still_kill_all(struct clock_page *page);

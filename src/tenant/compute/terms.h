/* SPDX-License-Identifier: Apache-2.0 */
/* A meter's terms: what is looked at, now and then, by whoever comes along. */
#pragma once

/* Looks whether anything has changed, if it is time to. Not with a meter's lock. */
void terms_poll(void);

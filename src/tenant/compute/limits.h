/* SPDX-License-Identifier: Apache-2.0 */
/* A meter's limits: what is looked at, now and then, by whoever comes along. */
#pragma once

/* Looks whether anything has changed, if it is time to. Not with a meter's lock. */
void limits_poll(void);

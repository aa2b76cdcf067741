/* SPDX-License-Identifier: Apache-2.0 */
/* Of programs whose processes take their sign of life away, and live on with what they hold. */
#pragma once

#include "tests/hostile/hostile.h"

/* Three processes, one after the other: each takes what it gets, and unmaps the region and each segment. All live until the last was looked at. */
void signless_attack(void);
/* The same, where each process has called prepare() before it first calls the driver: it may go on in a child. */
void signless_attack_after(void (*prepare)(void));

/* Unmaps the region and each segment of this process. */
void signless_unmap(void);

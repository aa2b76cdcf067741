/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who of the containers on a device may work, and who has to keep his limit of cores: what HAMi's monitor decides every five seconds.
 *
 * A container is active for as long as its library says that it has launched work; each decision counts that down by one. Where an
 * active container of a smaller number in `priority` (a more important one) is on one of its devices, a container is held back. A
 * container that is alone with its priority on all of its devices, with no more important one beside it, may exceed its limit.
 * Priority and devices of a container with a share are the share's, and none without one stands in its way: a region is written by
 * the container itself.
 */
#pragma once

#include <stddef.h>

#include "monitor/hami.h"

struct feedback {
	int32_t recent_launches, is_limited;
};

/* Decides about all containers of a node; the answers are in their order. 0 or -ENOMEM. */
int feedback_decide(const struct hami_figures *const *containers, size_t count,
	struct feedback *ret_answers) MUST_CHECK;

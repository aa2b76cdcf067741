/* SPDX-License-Identifier: Apache-2.0 */
/* The node's annotation by which the scheduler knows how near its devices are to each other. */
#pragma once

#include "base/bits.h"
#include "gpu/inventory.h"
#include "policy/topology.h"

#define SCORE_ANNOTATION "hami.io/node-nvidia-score"

/* Its text: the scores of each device with each other, in their order. The caller frees it. -ENOMEM. */
int score_format(const struct inventory *devices, const struct topology *topology,
	char **ret_text) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* What objects of the API say that bears on the books. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "policy/fit.h"
#include "scheduler/demand.h"
#include "scheduler/registry.h"

/* A text of the metadata, such as "name"; "": it is not there. */
const char *object_text(const json_t *object, const char *key);

/* Whether a text can be the name of an object: it becomes part of a path. Accepts NULL. */
bool object_is_name(const char *text);

/* The node that a pod is bound to; "": none. */
const char *object_node(const json_t *pod);

/* Whether a pod has ended, well or not. */
bool object_is_over(const json_t *pod);

/* Of a node, what the books are told: texts point into it. devices is NULL where the kubelet has none to give. */
struct registry_texts object_read_node(const struct demand_rules *rules, const json_t *node);

/* The limits of a quota; false: it limits nothing of ours. */
bool object_read_quota(
	const struct demand_rules *rules, const json_t *quota, struct fit_room *ret_limit);

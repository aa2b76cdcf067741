/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kube-scheduler says of a node before it asks the extender, as far as it stands in the two objects: cordon, taints, nodeSelector
 * and required node affinity. Its other plugins (processors and memory, ports, volumes, pods' affinity, spreading) are not asked.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define PLACEMENT_WORDS 300

/* Whether the pod may be put on the node; else why not. */
bool placement_allows(const json_t *node, const json_t *pod, char ret_why[PLACEMENT_WORDS]);

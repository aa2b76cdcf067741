/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod's priority class is worth, as the API server writes it into a pod that is created. */
#pragma once

#include <jansson.h>

#include "base/bits.h"
#include "base/err.h"

/* Adds a PriorityClass to the classes, an object by their names. -EINVAL with err set: it has no name or value; -ENOMEM. */
int priority_add(json_t *classes, const json_t *object, struct err *err) MUST_CHECK;

/* Gives a pod that has no priority that of its class, or of the class for all. -EINVAL with err set: there is no such class. */
int priority_give(const json_t *classes, json_t *pod, struct err *err) MUST_CHECK;

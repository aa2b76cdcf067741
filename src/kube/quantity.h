/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts as Kubernetes writes them: "10", "5k", "1Gi", "1e3", "1500m". */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The amount as a whole number. False where the text is none, it is not whole ("1500m"), or it does not fit: whoever
 * asks for 2^63 asks for nothing that is there.
 */
bool quantity_parse(const char *text, int64_t *ret_value);

/* One of a list of resources, {"nvidia.com/gpu": "1"}: a text or a number. False also where it is not there. */
bool quantity_of(const json_t *resources, const char *name, int64_t *ret_value);

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that answer with one value of a device: one line each. */
#pragma once

#include "sim/nvml/node.h"

/* symbol(device, type *): `value` may use `index`, the device's number. */
#define ANSWER(symbol, type, value)                        \
	BODY(symbol, nvmlDevice_t device, type *ret_value) \
	{                                                  \
		int index;                                 \
                                                           \
		ENTER(symbol);                             \
		index = node_index(device);                \
		REQUIRE(index >= 0 && ret_value);          \
		*ret_value = (type)(value);                \
		return NVML_SUCCESS;                       \
	}

/* symbol(device, type *): the card has no such thing. */
#define ANSWER_NONE(symbol, type, result)                      \
	BODY(symbol, nvmlDevice_t device, type *ret_value)     \
	{                                                      \
		ENTER(symbol);                                 \
		REQUIRE(node_index(device) >= 0 && ret_value); \
		return result;                                 \
	}

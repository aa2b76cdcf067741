/* SPDX-License-Identifier: Apache-2.0 */
/* How an exported function of libnvidia-ml.so.1 is written; its type comes from gpu/abi/nvml.h. */
#pragma once

#include "gpu/abi/nvml.h"
#include "sim/nvml/part.h"

#define ENTRY_UNPACK(...) __VA_ARGS__
#define ENTRY_EXPORT	  __attribute__((visibility("default")))

/*
 * ENTRY_BODY(symbol, (parameters), (arguments)) { ... } writes an exported function. The body runs
 * between init and shutdown, when no injected fault says otherwise.
 */
#define ENTRY_BODY(symbol, params, args)                                     \
	static nvmlReturn_t symbol##_body params;                            \
	ENTRY_EXPORT symbol##_fn symbol;                                     \
	nvmlReturn_t symbol params                                           \
	{                                                                    \
		nvmlReturn_t result = node_enter(NODE_##symbol);             \
		return result == NVML_SUCCESS ? symbol##_body args : result; \
	}                                                                    \
	static nvmlReturn_t symbol##_body params

/*
 * The same for a function whose first parameter is a device. The body gets the number of the device,
 * index, in its place; a handle that is none of ours is refused.
 */
#define ENTRY_DEVICE(symbol, params, args)                                                        \
	static nvmlReturn_t symbol##_body(int index, ENTRY_UNPACK params);                        \
	ENTRY_EXPORT symbol##_fn symbol;                                                          \
	nvmlReturn_t symbol(nvmlDevice_t device, ENTRY_UNPACK params)                             \
	{                                                                                         \
		int index;                                                                        \
		nvmlReturn_t result = node_enter_device(NODE_##symbol, device, &index);           \
		return result == NVML_SUCCESS ? symbol##_body(index, ENTRY_UNPACK args) : result; \
	}                                                                                         \
	static nvmlReturn_t symbol##_body(int index, ENTRY_UNPACK params)

/* The same for what cards and their parts have: the body gets `part`, a struct part, in place of the device. */
#define ENTRY_PART(symbol, params, args)                                                          \
	static nvmlReturn_t symbol##_body(const struct part *part, ENTRY_UNPACK params);          \
	ENTRY_EXPORT symbol##_fn symbol;                                                          \
	nvmlReturn_t symbol(nvmlDevice_t device, ENTRY_UNPACK params)                             \
	{                                                                                         \
		struct part part;                                                                 \
		nvmlReturn_t result = part_enter(NODE_##symbol, device, &part);                   \
		return result == NVML_SUCCESS ? symbol##_body(&part, ENTRY_UNPACK args) : result; \
	}                                                                                         \
	static nvmlReturn_t symbol##_body(const struct part *part, ENTRY_UNPACK params)
#define ENTRY_PART_ALIAS(symbol, other, params, args)         \
	ENTRY_PART(symbol, params, args)                      \
	{                                                     \
		return other##_body(part, ENTRY_UNPACK args); \
	}

/* nvmlInit and its like, which are never void: `init` takes the number of the function. */
#define ENTRY_OPEN(symbol, params, init)    \
	ENTRY_EXPORT symbol##_fn symbol;    \
	nvmlReturn_t symbol params          \
	{                                   \
		return init(NODE_##symbol); \
	}

/* A function with the body of another. */
#define ENTRY_ALIAS(symbol, other, params, args) \
	ENTRY_BODY(symbol, params, args)         \
	{                                        \
		return other##_body args;        \
	}
#define ENTRY_DEVICE_ALIAS(symbol, other, params, args)        \
	ENTRY_DEVICE(symbol, params, args)                     \
	{                                                      \
		return other##_body(index, ENTRY_UNPACK args); \
	}

/* symbol(device, type *): one value of a device; `value` may use `index`. */
#define ENTRY_ANSWER(symbol, type, value)                     \
	ENTRY_DEVICE(symbol, (type * ret_value), (ret_value)) \
	{                                                     \
		if (!ret_value)                               \
			return NVML_ERROR_INVALID_ARGUMENT;   \
		*ret_value = (type)(value);                   \
		return NVML_SUCCESS;                          \
	}

/* symbol(device, type *): the card has no such thing. */
#define ENTRY_NONE(symbol, type, result)                                 \
	ENTRY_DEVICE(symbol, (type * ret_value), (ret_value))            \
	{                                                                \
		return ret_value ? result : NVML_ERROR_INVALID_ARGUMENT; \
	}

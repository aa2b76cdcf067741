/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the codes with which driver functions fail. */
#pragma once

#include <stdint.h>

/*
 * The code that `text` names for the function `symbol`: a number, or a name of CUDA's or NVML's
 * list, in either case of letters, with or without CUDA_ERROR_ or NVML_ERROR_ before it. Returns 0
 * and *ret_code, or -EINVAL.
 */
int code_parse(const char *symbol, const char *text, int32_t *ret_code);

/* The name of a code of `symbol`'s library, or NULL. */
const char *code_name(const char *symbol, int32_t code);

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the codes with which driver functions fail. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpu/abi/cuda.h"
#include "gpu/abi/nvml.h"
#include "sim/tool/code.h"

struct code {
	const char *name; /* without the prefix */
	int32_t value;
};

/* clang-format off */
static const struct code cuda_codes[] = {
#define CODE(name) {#name, CUDA_ERROR_##name},
	CODE(INVALID_VALUE) CODE(OUT_OF_MEMORY) CODE(NOT_INITIALIZED)
	CODE(DEINITIALIZED) CODE(NO_DEVICE) CODE(INVALID_DEVICE) CODE(INVALID_IMAGE)
	CODE(INVALID_CONTEXT) CODE(MAP_FAILED) CODE(ECC_UNCORRECTABLE)
	CODE(INVALID_HANDLE) CODE(NOT_FOUND) CODE(NOT_READY) CODE(ILLEGAL_ADDRESS)
	CODE(LAUNCH_OUT_OF_RESOURCES) CODE(LAUNCH_TIMEOUT) CODE(CONTEXT_IS_DESTROYED)
	CODE(LAUNCH_FAILED) CODE(NOT_PERMITTED) CODE(NOT_SUPPORTED)
	CODE(SYSTEM_NOT_READY) CODE(MPS_CONNECTION_FAILED) CODE(UNKNOWN)
#undef CODE
};

static const struct code nvml_codes[] = {
#define CODE(name) {#name, NVML_ERROR_##name},
	CODE(UNINITIALIZED) CODE(INVALID_ARGUMENT) CODE(NOT_SUPPORTED)
	CODE(NO_PERMISSION) CODE(NOT_FOUND) CODE(INSUFFICIENT_SIZE)
	CODE(DRIVER_NOT_LOADED) CODE(TIMEOUT) CODE(FUNCTION_NOT_FOUND)
	CODE(GPU_IS_LOST) CODE(RESET_REQUIRED) CODE(OPERATING_SYSTEM)
	CODE(LIB_RM_VERSION_MISMATCH) CODE(MEMORY) CODE(NO_DATA) CODE(UNKNOWN)
#undef CODE
};
/* clang-format on */

/* The list, its length and its prefix for a function, by the function's own prefix. */
static const struct code *codes_of(const char *symbol, size_t *ret_count, const char **ret_prefix)
{
	if (!strncmp(symbol, "nvml", 4)) {
		*ret_count = sizeof(nvml_codes) / sizeof(nvml_codes[0]);
		*ret_prefix = "NVML_ERROR_";
		return nvml_codes;
	}
	*ret_count = sizeof(cuda_codes) / sizeof(cuda_codes[0]);
	*ret_prefix = "CUDA_ERROR_";
	return cuda_codes;
}

int code_parse(const char *symbol, const char *text, int32_t *ret_code)
{
	size_t count;
	const char *prefix;
	const struct code *codes = codes_of(symbol, &count, &prefix);
	char *end;
	long number = strtol(text, &end, 0);

	if (end != text && !*end) {
		if (number <= 0 || number > INT32_MAX)
			return -EINVAL;
		*ret_code = (int32_t)number;
		return 0;
	}
	if (!strncasecmp(text, prefix, strlen(prefix)))
		text += strlen(prefix);
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(text, codes[i].name)) {
			*ret_code = codes[i].value;
			return 0;
		}
	return -EINVAL;
}

const char *code_name(const char *symbol, int32_t code)
{
	size_t count;
	const char *prefix;
	const struct code *codes = codes_of(symbol, &count, &prefix);

	for (size_t i = 0; i < count; i++)
		if (codes[i].value == code)
			return codes[i].name;
	return NULL;
}

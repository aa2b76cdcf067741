/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of results. */
#include <stddef.h>

#include "sim/cuda/api/entry.h"

ENTRY_EARLY(cuGetErrorName, (CUresult error, const char **name), (error, name))
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	switch (error) {
#define ERROR(error, text)              \
	case CUDA_##error:              \
		*name = "CUDA_" #error; \
		return CUDA_SUCCESS;
#include "sim/cuda/api/error.def"
	}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

ENTRY_EARLY(cuGetErrorString, (CUresult error, const char **text), (error, text))
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	switch (error) {
#define ERROR(error, words)    \
	case CUDA_##error:     \
		*text = words; \
		return CUDA_SUCCESS;
#include "sim/cuda/api/error.def"
	}
	*text = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

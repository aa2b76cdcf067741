/* SPDX-License-Identifier: Apache-2.0 */
/* What the real driver exports and the simulated one has no body for. A name with a body is no row here: it would not link. */
#include <stdint.h>

#include "gpu/abi/cuda.h"

#define EXPORT __attribute__((visibility("default")))

/* The parameters do not matter: the caller puts them where only he looks. */
#define UNSUPPORTED(symbol, base, version, form) UNLISTED(symbol)
#define UNLISTED(symbol)                         \
	EXPORT CUresult symbol(void);            \
	EXPORT CUresult symbol(void)             \
	{                                        \
		return CUDA_ERROR_NOT_SUPPORTED; \
	}
#define VARIABLE(symbol)               \
	EXPORT extern uint64_t symbol; \
	EXPORT uint64_t symbol;
#include "sim/cuda/unsupported.def"

/* SPDX-License-Identifier: Apache-2.0 */
/* What the real runtime exports and this one has no body for. */
#include "sim/cudart/entry.h"

/* The parameters do not matter: the caller puts them where only he looks. */
#define UNSUPPORTED(symbol)                                     \
	RUNTIME_EXPORT cudaError_t symbol(void);                \
	RUNTIME_EXPORT cudaError_t symbol(void)                 \
	{                                                       \
		return runtime_leave(CUDA_ERROR_NOT_SUPPORTED); \
	}
#define UNSUPPORTED_12(symbol)
#define UNSUPPORTED_13(symbol)
#if RUNTIME_MAJOR < 13
#undef UNSUPPORTED_12
#define UNSUPPORTED_12(symbol) UNSUPPORTED(symbol)
#else
#undef UNSUPPORTED_13
#define UNSUPPORTED_13(symbol) UNSUPPORTED(symbol)
#endif
#include "sim/cudart/unsupported.def"

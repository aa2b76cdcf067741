/* SPDX-License-Identifier: Apache-2.0 */
/* What the real library exports and the simulated one has no body for. A name with a body is no row here: it would not link. */
#include "gpu/abi/nvml.h"

#define EXPORT __attribute__((visibility("default")))

/* The parameters do not matter: the caller puts them where only he looks. */
#define UNSUPPORTED(symbol)                      \
	EXPORT nvmlReturn_t symbol(void);        \
	EXPORT nvmlReturn_t symbol(void)         \
	{                                        \
		return NVML_ERROR_NOT_SUPPORTED; \
	}
#include "sim/nvml/unsupported.def"

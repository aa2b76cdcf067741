/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the table without a function is a link error here. */
#include "gpu/abi/nvml.h"

#define ENTRY(symbol) extern symbol##_fn symbol;
#include "sim/nvml/entry.def"

__attribute__((used)) static const void *const functions[] = {
#define ENTRY(symbol) (const void *)symbol,
#include "sim/nvml/entry.def"
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When two names mean one device.
 *
 * A MIG instance is GPU-... to the CUDA driver and MIG-... to NVML; what follows is unique among
 * devices of both kinds. Whoever compares names of devices that may come from different libraries,
 * files or people asks here.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"

/* What follows the kind, or all of it where there is no kind. */
const char *device_name_core(const char *name) MUST_CHECK;

/* At most 91 characters behind the kind are looked at: a region's entry holds no more. */
bool device_name_is_same(const char *a, const char *b) MUST_CHECK;

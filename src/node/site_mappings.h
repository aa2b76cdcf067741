/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that processes have mapped. */
#pragma once

#include "base/bits.h"
#include "node/sites.h"

/* Adds every region that a process has mapped and that was not found before. 0 or -ENOMEM. */
int site_mappings_add(struct sites *s) MUST_CHECK;

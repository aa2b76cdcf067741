/* SPDX-License-Identifier: Apache-2.0 */
/* What was not looked at, of what users have made. */
#pragma once

#include "node/sites.h"

/* A line on stderr for each user with more than is looked at, and one for what might never answer. */
void left_out_tell(const struct sites *sites);

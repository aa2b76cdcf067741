/* SPDX-License-Identifier: Apache-2.0 */
/* The page's files, which the build puts into the program. */
#pragma once

#include <stddef.h>

struct asset {
	const char *path, *type;
	const char *bytes;
	size_t count;
};

extern const struct asset assets[];
extern const size_t asset_count;

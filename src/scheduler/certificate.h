/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a server's certificate, which are replaced while it runs. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"

struct certificate {
	char *texts[3]; /* certificate, key, authority of clients; NULL where there is none */
};

/* Reads the files; "" is none. -EINVAL, -ENOENT, ... with err set; -ENOMEM. */
int certificate_read(const char *const paths[3], struct certificate *ret_certificate,
	struct err *err) MUST_CHECK;

bool certificate_is_same(const struct certificate *one, const struct certificate *other);

/* Accepts what is all zero. */
void certificate_deinit(struct certificate *certificate);

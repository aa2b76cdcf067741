/* SPDX-License-Identifier: Apache-2.0 */
/* An authority of our own, and the certificate of a server that it has signed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"

/* PEM texts; NULL where there is none. */
struct authority {
	char *bundle; /* the authority's certificates: today's, and the one before while it is good */
	char *authority_key, *certificate, *key;
};

struct authority_wish {
	const char *hosts; /* names and addresses of the server, with commas */
	int64_t life_s;	   /* of a certificate; the authority lives ten times as long */
	int64_t now_s;
};

/*
 * Makes what is missing, is not understood, is for other hosts, or has less than a third of its life left; and all of it anew
 * where the authority would end before a certificate that it signs now. -EINVAL with err set; -ENOMEM.
 */
int authority_renew(struct authority *authority, const struct authority_wish *wish,
	bool *ret_changed, struct err *err) MUST_CHECK;

/* Accepts what is all zero. */
void authority_deinit(struct authority *authority);

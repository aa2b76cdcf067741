/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bearer token, which the kubelet replaces in its file long before it ends: the file is read again once in
 * KUBE_TOKEN_FRESH_NS, and when the server refuses what was in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* The kubelet renews a token when a fifth of its life (of at least ten minutes) is left: two minutes. */
#define KUBE_TOKEN_FRESH_NS (10ull * 1000000000)

struct kube_token {
	char *path;   /* NULL: it never changes */
	char *header; /* "Authorization: Bearer ..."; NULL: there is none */
	uint64_t read_at_ns;
	unsigned number; /* of the header: each new one has another */
};

/* From a file, or the text itself; neither: without a token. -ENOMEM. */
int kube_token_init(struct kube_token *token, const char *path, const char *text) MUST_CHECK;
void kube_token_deinit(struct kube_token *token);

/*
 * The header, from the file where that was not read lately; NULL: none. What cannot be read leaves the old
 * one in force.
 */
const char *kube_token_header(struct kube_token *token, uint64_t now_ns);

/* Reads the file at once. Another token in it has another number. */
void kube_token_renew(struct kube_token *token, uint64_t now_ns);

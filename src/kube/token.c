/* SPDX-License-Identifier: Apache-2.0 */
/* A bearer token and its file. */
#include "kube/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Tokens of service accounts are about 1 KiB, those of identity providers some KiB. */
#define TOKEN_MOST_BYTES 16384

static char *header_of(const char *text)
{
	size_t length = strcspn(text, " \t\r\n");
	char *header;

	if (!length || asprintf(&header, "Authorization: Bearer %.*s", (int)length, text) < 0)
		return NULL;
	return header;
}

int kube_token_init(struct kube_token *token, const char *path, const char *text)
{
	*token = (struct kube_token){0};
	if (path)
		token->path = strdup(path);
	else if (text)
		token->header = header_of(text);
	return (path && !token->path) || (!path && text && !token->header) ? -ENOMEM : 0;
}

void kube_token_deinit(struct kube_token *token)
{
	free(token->path);
	free(token->header);
	*token = (struct kube_token){0};
}

void kube_token_renew(struct kube_token *token, uint64_t now_ns)
{
	char text[TOKEN_MOST_BYTES], *header;
	size_t length;

	if (!token->path)
		return;
	token->read_at_ns = now_ns;
	if (file_read(token->path, text, sizeof(text), &length))
		return;
	header = header_of(text);
	if (!header)
		return;
	if (token->header && !strcmp(header, token->header)) {
		free(header);
		return;
	}
	free(token->header);
	token->header = header;
	token->number++;
}

const char *kube_token_header(struct kube_token *token, uint64_t now_ns)
{
	if (!token->header || now_ns - token->read_at_ns > KUBE_TOKEN_FRESH_NS)
		kube_token_renew(token, now_ns);
	return token->header;
}

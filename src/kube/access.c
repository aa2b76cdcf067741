/* SPDX-License-Identifier: Apache-2.0 */
/* The API server's address, and the identity of this program. */
#include "kube/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kube_access_deinit(struct kube_access *access)
{
	free(access->server);
	free(access->token);
	free(access->token_file);
	free(access->authority);
	free(access->certificate);
	free(access->key);
	free(access->authority_file);
	free(access->certificate_file);
	free(access->key_file);
	*access = (struct kube_access){0};
}

struct http_trust kube_access_trust(const struct kube_access *access)
{
	return (struct http_trust){
		.authority = {.text = access->authority, .path = access->authority_file},
		.certificate = {.text = access->certificate, .path = access->certificate_file},
		.key = {.text = access->key, .path = access->key_file},
		.is_unverified = access->is_unverified,
	};
}

int kube_access_in_pod(const char *folder, const char *host, const char *port,
	struct kube_access *ret_access, struct err *err)
{
	struct kube_access access = KUBE_ACCESS_NULL;
	bool is_ipv6;

	if (!host || !*host || !port || !*port)
		return err_set(err, EINVAL,
			"this is no pod: the server's host and port are not in the environment");
	is_ipv6 = strchr(host, ':');
	if (asprintf(&access.server, "https://%s%s%s:%s", is_ipv6 ? "[" : "", host,
		    is_ipv6 ? "]" : "", port) < 0)
		access.server = NULL;
	if (asprintf(&access.token_file, "%s/token", folder) < 0)
		access.token_file = NULL;
	if (asprintf(&access.authority_file, "%s/ca.crt", folder) < 0)
		access.authority_file = NULL;
	if (!access.server || !access.token_file || !access.authority_file) {
		kube_access_deinit(&access);
		return err_set(err, ENOMEM, "no memory");
	}
	*ret_access = access;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server's address and the identity of this program: from a pod's service account, or from a
 * kubeconfig file.
 *
 * A kubeconfig may name certificates and keys by path or as base64, a token or a file with it. Not supported,
 * and refused by name: users with a program (exec), an auth-provider, a password, or impersonation.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/http.h"

struct kube_access {
	char *server; /* "https://10.0.0.1:443", without a slash at the end */
	char *token, *token_file;
	char *authority, *certificate, *key;		    /* PEM text */
	char *authority_file, *certificate_file, *key_file; /* or paths */
	bool is_unverified;
};

/* clang-format off */
#define KUBE_ACCESS_NULL {0}
/* clang-format on */

/*
 * A kubeconfig file's current context. Relative paths in it are taken from its folder. -EINVAL: it is not
 * understood.
 */
int kube_access_read(const char *path, struct kube_access *ret_access, struct err *err) MUST_CHECK;

/* The same of the context of that name; NULL: the current one. */
int kube_access_read_context(const char *path, const char *context, struct kube_access *ret_access,
	struct err *err) MUST_CHECK;

/*
 * The service account of this pod: its folder (usually KUBE_ACCOUNT_FOLDER) with token and ca.crt, and the
 * server from host and port, as KUBERNETES_SERVICE_HOST and _PORT name them.
 */
#define KUBE_ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"
int kube_access_in_pod(const char *folder, const char *host, const char *port,
	struct kube_access *ret_access, struct err *err) MUST_CHECK;

/*
 * Where a program looks for it: the file at path, else the one that KUBECONFIG names, else the service account of this pod, else
 * ~/.kube/config. path and context may be NULL. -ENOENT: there is none.
 */
int kube_access_find(const char *path, const char *context, struct kube_access *ret_access,
	struct err *err) MUST_CHECK;

/* Accepts one that is empty, and one that is half made. */
void kube_access_deinit(struct kube_access *access);

/* The trust that it names; points into it. */
struct http_trust kube_access_trust(const struct kube_access *access);

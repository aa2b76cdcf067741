/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program looks for the API server's address. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kube/access.h"

int kube_access_find(
	const char *path, const char *context, struct kube_access *ret_access, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"), *home = getenv("HOME");
	_cleanup_free_ char *at_home = NULL;

	if (!path)
		path = getenv("KUBECONFIG");
	if (path && *path)
		return kube_access_read_context(path, context, ret_access, err);
	if (host && *host && !context)
		return kube_access_in_pod(KUBE_ACCOUNT_FOLDER, host,
			getenv("KUBERNETES_SERVICE_PORT"), ret_access, err);
	if (home && *home && asprintf(&at_home, "%s/.kube/config", home) >= 0 &&
		!access(at_home, R_OK))
		return kube_access_read_context(at_home, context, ret_access, err);
	return err_set(err, ENOENT,
		"there is no API server: neither KUBECONFIG nor a service account names one");
}

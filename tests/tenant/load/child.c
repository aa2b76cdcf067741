/* SPDX-License-Identifier: Apache-2.0 */
/* Load family: a child of a process that has used CUDA. It may try, whatever it is told, and ends. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tenant/load/load.h"

static CUresult bear(struct load *l, struct load_held *ret_held)
{
	bool does_try = load_below(l, 2);
	pid_t child = fork();
	CUdeviceptr p;
	int status;

	if (child == 0) {
		if (does_try)
			l->client->cu.cuMemAlloc_v2(&p, LOAD_MIB);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	return CUDA_SUCCESS;
}

const struct load_family load_child = {.weight = 4, .take = bear};

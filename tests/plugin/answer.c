/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer to the kubelet says of one container. */
#include "tests/plugin/answer.h"

#include <string.h>

const char *answer_env(const V1beta1__ContainerAllocateResponse *answer, const char *name)
{
	for (size_t i = 0; i < answer->n_envs; i++)
		if (!strcmp(answer->envs[i]->key, name))
			return answer->envs[i]->value;
	return NULL;
}

const V1beta1__Mount *answer_mount(const V1beta1__ContainerAllocateResponse *answer, const char *at)
{
	for (size_t i = 0; i < answer->n_mounts; i++)
		if (!strcmp(answer->mounts[i]->container_path, at))
			return answer->mounts[i];
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the kubelet for slices. */
#include "plugin/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void job_free(struct job *job)
{
	if (!job)
		return;
	if (job->request)
		v1beta1__allocate_request__free_unpacked(job->request, NULL);
	if (job->preferred)
		v1beta1__preferred_allocation_request__free_unpacked(job->preferred, NULL);
	free(job->answer);
	free(job);
}

/* The kubelet asks for one container's preference at a time, and for no more than it has: room is made for as many. */
static bool is_understood(const struct job *job)
{
	const V1beta1__ContainerPreferredAllocationRequest *asked;

	if (job->request)
		return job->request->n_container_requests;
	if (!job->preferred || job->preferred->n_container_requests != 1)
		return false;
	asked = job->preferred->container_requests[0];
	return asked->allocation_size > 0 &&
	       (size_t)asked->allocation_size <= asked->n_available_deviceids;
}

int job_new(struct rpc_call *call, bool is_preferred, const void *message, size_t bytes,
	struct job **ret_job)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->call = call;
	if (is_preferred)
		job->preferred =
			v1beta1__preferred_allocation_request__unpack(NULL, bytes, message);
	else
		job->request = v1beta1__allocate_request__unpack(NULL, bytes, message);
	if (!is_understood(job)) {
		job_free(job);
		return -EINVAL;
	}
	*ret_job = job;
	return 0;
}

unsigned job_slices(const struct job *job)
{
	return job->preferred ? (unsigned)job->preferred->container_requests[0]->allocation_size
			      : (unsigned)job->request->container_requests[job->at]->n_devices_ids;
}

/* Each is field 1 of the answer. */
int job_append(struct job *job, const uint8_t *message, size_t bytes)
{
	uint8_t *grown = realloc(job->answer, job->answer_bytes + bytes + 11), *at;
	size_t rest = bytes;

	if (!grown)
		return -ENOMEM;
	job->answer = grown;
	at = grown + job->answer_bytes;
	*at++ = 0x0a;
	for (; rest > 0x7f; rest >>= 7)
		*at++ = (uint8_t)(rest | 0x80);
	*at++ = (uint8_t)rest;
	memcpy(at, message, bytes);
	job->answer_bytes = (size_t)(at - grown) + bytes;
	return 0;
}

int job_append_preferred(struct job *job, const char **ids, size_t count)
{
	V1beta1__ContainerPreferredAllocationResponse response =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
	_cleanup_free_ uint8_t *packed = NULL;

	response.deviceids = (char **)ids;
	response.n_deviceids = count;
	packed = malloc(
		v1beta1__container_preferred_allocation_response__get_packed_size(&response) + 1);
	return packed ? job_append(job, packed,
				v1beta1__container_preferred_allocation_response__pack(
					&response, packed))
		      : -ENOMEM;
}

void job_answer(struct job *job)
{
	if (job->call)
		rpc_answer(job->call, job->answer ? job->answer : (const uint8_t *)"",
			job->answer_bytes);
	job->call = NULL;
}

void job_refuse(struct job *job, const char *words)
{
	if (job->call)
		rpc_refuse(job->call, RPC_FAILED_PRECONDITION, words);
	job->call = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that were last told that no node does. */
#include "scheduler/waiting.h"

#include <string.h>

#include "base/text.h"

static struct waiting_pod *find(struct waiting *waiting, const char *uid)
{
	for (size_t i = 0; i < WAITING_MOST; i++)
		if (waiting->pods[i].told_s &&
			!strncmp(waiting->pods[i].uid, uid, sizeof(waiting->pods[i].uid) - 1))
			return &waiting->pods[i];
	return NULL;
}

/* The place of the one that was told longest ago; of those that do not wait, where there is one. */
static struct waiting_pod *make_room(struct waiting *waiting)
{
	struct waiting_pod *best = &waiting->pods[0];

	for (size_t i = 1; i < WAITING_MOST; i++) {
		struct waiting_pod *pod = &waiting->pods[i];

		if (pod->is_waiting != best->is_waiting ? best->is_waiting
							: pod->told_s < best->told_s)
			best = pod;
	}
	return best;
}

static void add_reason(struct waiting_pod *pod, const struct filter_reason *reason)
{
	for (unsigned i = 0; i < pod->reason_count; i++)
		if (!memcmp(&pod->reasons[i].reason, reason, sizeof(*reason))) {
			pod->reasons[i].nodes++;
			return;
		}
	if (pod->reason_count < WAITING_REASONS)
		pod->reasons[pod->reason_count++] = (struct waiting_reason){*reason, 1};
	else
		pod->other_nodes++;
}

static void note_request(struct waiting_pod *pod, const struct fit_pod *fit)
{
	pod->devices = pod->memory_mib = pod->cores = 0;
	for (size_t i = 0; i < fit->request_count; i++) {
		const struct fit_request *request = &fit->requests[i];

		pod->devices += request->devices;
		if (request->memory_mib > pod->memory_mib)
			pod->memory_mib = request->memory_mib;
		if (request->cores > pod->cores)
			pod->cores = request->cores;
	}
}

void waiting_note(struct waiting *waiting, const struct filter_request *request,
	const struct filter_answer *answer, int64_t now_s)
{
	const struct demand *demand = request->demand;
	struct waiting_pod *pod = find(waiting, demand->uid);

	if (!pod) {
		pod = make_room(waiting);
		*pod = (struct waiting_pod){.told_s = 0};
		text_copy(pod->uid, sizeof(pod->uid), demand->uid);
		text_copy(pod->namespace, sizeof(pod->namespace), demand->namespace);
		text_copy(pod->name, sizeof(pod->name), demand->name);
	}
	if (!waiting_is_so(pod, now_s))
		pod->since_s = now_s;
	pod->told_s = now_s;
	pod->is_waiting = true;
	pod->count++;
	note_request(pod, &demand->pod);
	pod->reason_count = pod->other_nodes = 0;
	for (size_t i = 0; i < answer->name_count; i++)
		if (answer->reasons[i])
			add_reason(pod, answer->reasons[i]);
}

void waiting_settle(struct waiting *waiting, const char *uid)
{
	struct waiting_pod *pod = find(waiting, uid);

	if (pod)
		pod->is_waiting = false;
}

bool waiting_is_so(const struct waiting_pod *pod, int64_t now_s)
{
	return pod->is_waiting && now_s - pod->told_s < WAITING_REST_S;
}

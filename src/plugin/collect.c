/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of pods that are gone are removed.
 *
 * A pod is gone where the API server does not list it. While the kubelet has slices in its record for one that is not
 * listed, the two do not have the same pods, and nothing is removed: the record names no UID, so any file may be that pod's.
 */
#include "plugin/collect.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#define LOG_TOPIC LOG_PODS

#define PAUSE_NS  (60ull * 1000000000)

static void sweep(void *context)
{
	struct collect *collect = context;
	const char **uids;
	size_t count;
	struct err err = ERR_NULL;

	if (agent_list_pods(collect->agent, true, &uids, &count))
		return;
	if (record_has_unknown(&collect->record)) {
		log_info("the kubelet has a pod that the API server does not list; no files are "
			 "removed");
		free(uids);
		uids = NULL;
		count = 0;
	}
	if (prepare_collect(collect->settings, uids, count, &err))
		log_warn("files of pods that are gone stay", STR("why", err.text));
	free(uids);
	record_cancel(&collect->record);
}

static void begin(void *context)
{
	struct collect *collect = context;

	loop_timer_set(collect->record.cluster->loop, &collect->timer, clock_now_ns() + PAUSE_NS);
	record_cancel(&collect->record);
	if (!record_read(&collect->record))
		sweep(collect);
}

void collect_start(
	struct collect *collect, struct agent *agent, const struct prepare_settings *settings)
{
	collect->agent = agent;
	collect->settings = settings;
	collect->record =
		(struct record){.cluster = agent_cluster(agent), .done = sweep, .context = collect};
	collect->timer = (struct loop_timer){.due = begin, .context = collect};
	loop_timer_set(collect->record.cluster->loop, &collect->timer, clock_now_ns() + PAUSE_NS);
}

void collect_stop(struct collect *collect)
{
	if (!collect->agent)
		return;
	loop_timer_clear(collect->record.cluster->loop, &collect->timer);
	record_cancel(&collect->record);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of pods that are gone are removed.
 *
 * A pod is gone where the API server does not list it and the kubelet has no slices in its record for it. It is looked
 * once a minute, by a plugin that was just begun, too: so what is left of a pod goes within PREPARE_YOUNG_S and a minute.
 */
#include "plugin/collect.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define LOG_TOPIC LOG_PODS

#define PAUSE_NS  (60ull * 1000000000)

static void sweep(void *context)
{
	struct collect *collect = context;
	_cleanup_free_ const char **uids = NULL;
	_cleanup_free_ struct prepare_name *names = NULL;
	struct prepare_pods pods;
	struct err err = ERR_NULL;

	if (agent_list_pods(collect->agent, true, &uids, &pods.uid_count) ||
		record_list_unknown(&collect->record, &names, &pods.name_count))
		return;
	pods.uids = uids;
	pods.names = names;
	if (pods.name_count)
		log_info("the kubelet has pods that the API server does not list; their files stay",
			U64("pods", pods.name_count));
	if (prepare_collect(collect->settings, &pods, &err))
		log_warn("files of pods that are gone stay", STR("why", err.text));
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's extender and webhook as a whole. */
#include "scheduler/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "kube/access.h"
#include "kube/client.h"
#include "scheduler/certificate.h"
#include "scheduler/extender.h"
#include "scheduler/lease.h"
#include "scheduler/metrics.h"
#include "scheduler/overview.h"
#include "scheduler/own_certificate.h"
#include "scheduler/server.h"
#include "scheduler/waiting.h"
#include "web/web.h"

#define LOG_TOPIC	LOG_PODS
#define SECOND_NS	1000000000ull
#define TICK_NS		(5 * SECOND_NS)
#define EVENTS_A_SECOND 50

struct daemon {
	struct loop *loop;
	const struct settings *settings;
	struct kube_client *client, *events_client;
	struct extender extender;
	struct measure measure;
	struct waiting waiting;
	struct series_list series;
	struct web *web; /* NULL: there is no page */
	struct lease *lease;
	struct server *server;
	struct own_certificate *own_certificate; /* NULL: there are files, or none */
	struct loop_timer tick;
};

static void lock_changed(void *context, struct cluster_node *node)
{
	struct daemon *daemon = context;

	extender_lock_changed(&daemon->extender, node);
}

static void pod_settled(void *context, const char *uid)
{
	struct daemon *daemon = context;

	waiting_settle(&daemon->waiting, uid);
}

static void became_known(void *context)
{
	struct daemon *daemon = context;

	log_info(
		"the cluster is known", U64("nodes", cluster_node_count(daemon->extender.cluster)));
}

/*
 * What the leader before has promised last may not have been told yet, so all pods are read again before the first
 * answer. And whoever leads no more has nothing to say about promises.
 */
static void leadership_changed(void *context, bool leads)
{
	struct daemon *daemon = context;

	daemon->extender.leads = leads;
	holds_disown(cluster_holds(daemon->extender.cluster));
	cluster_list_pods_again(daemon->extender.cluster);
}

static void tick(void *context)
{
	struct daemon *daemon = context;

	holds_expire(cluster_holds(daemon->extender.cluster), daemon->extender.leads);
	server_renew(daemon->server);
	if (daemon->web)
		overview_sample(&daemon->extender, &daemon->series);
	loop_timer_set(daemon->loop, &daemon->tick, clock_now_ns() + TICK_NS);
}

/* Of nodes and pods most is in these. */
static const char *const unused[] = {"managedFields", "images", "conditions", "env", "envFrom",
	"volumes", "volumeMounts", "tolerations", "volumesInUse", "volumesAttached", "command",
	"args", "containerStatuses", NULL};

static int connect_to_server(struct daemon *daemon, struct err *err)
{
	struct kube_settings settings = kube_settings_default;
	struct kube_access access = KUBE_ACCESS_NULL;
	int result = kube_access_find(NULL, NULL, &access, err);

	settings.calls_per_s = (unsigned)daemon->settings->calls_per_s;
	settings.burst = (unsigned)daemon->settings->burst;
	if (daemon->settings->call_ns)
		settings.deadline_ns = daemon->settings->call_ns;
	settings.unused = unused;
	settings.attempt_ns = settings.deadline_ns / 3 + 1;
	settings.first_pause_ns = SECOND_NS / 20;
	settings.most_pause_ns = 2 * SECOND_NS;
	if (!result)
		result = kube_client_new(daemon->loop, &access, &settings, &daemon->client, err);
	settings.calls_per_s = EVENTS_A_SECOND;
	settings.burst = 4 * EVENTS_A_SECOND;
	if (!result)
		result = kube_client_new(
			daemon->loop, &access, &settings, &daemon->events_client, err);
	kube_access_deinit(&access);
	return result;
}

static int make_parts(struct daemon *daemon)
{
	static const struct cluster_events events = {lock_changed, pod_settled, became_known};
	const struct settings *settings = daemon->settings;
	struct extender *extender = &daemon->extender;
	char host[256] = "";
	int result;

	*extender = (struct extender){.loop = daemon->loop,
		.client = daemon->client,
		.settings = settings,
		.measure = &daemon->measure,
		.waiting = &daemon->waiting,
		.leads = !settings->has_leader};
	result = event_log_new(daemon->events_client,
		*settings->scheduler_name ? settings->scheduler_name : "vgpu-scheduler",
		&extender->events);
	if (!result)
		result = cluster_start(
			daemon->client, settings, &events, daemon, &extender->cluster);
	gethostname(host, sizeof(host) - 1);
	if (!result && settings->has_leader)
		result = lease_start(daemon->client,
			&(struct lease_request){
				settings->lease_namespace, settings->lease_name, host},
			leadership_changed, daemon, &daemon->lease);
	return result;
}

static void certificate_came(void *context, const char *certificate, const char *key)
{
	const struct daemon *daemon = context;

	server_take_certificate(daemon->server, certificate, key);
}

static int make_certificate(struct daemon *daemon, struct err *err)
{
	const struct settings *settings = daemon->settings;
	const struct own_certificate_request request = {.secret = settings->webhook_secret,
		.configuration = settings->webhook_configuration,
		.hosts = settings->webhook_hosts,
		.life_ns = settings->certificate_life_ns};

	return own_certificate_start(
		daemon->client, &request, certificate_came, daemon, &daemon->own_certificate, err);
}

static int write_page(void *context, FILE *out)
{
	struct daemon *daemon = context;

	return overview_write(&daemon->extender, &daemon->series, out);
}

static int write_history(void *context, FILE *out)
{
	const struct daemon *daemon = context;

	series_write(&daemon->series, out);
	return 0;
}

static int show_page(struct daemon *daemon, struct err *err)
{
	const struct web_source source = {write_page, write_history, daemon};

	return web_start(daemon->loop, daemon->settings->page_bind, &source, &daemon->web, err);
}

int daemon_start(struct loop *loop, const struct settings *settings, struct daemon **ret_daemon,
	struct err *err)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int result;

	if (!daemon)
		return err_set(err, ENOMEM, "no memory");
	daemon->loop = loop;
	daemon->settings = settings;
	daemon->tick = (struct loop_timer){.due = tick, .context = daemon};
	result = connect_to_server(daemon, err);
	if (!result && make_parts(daemon))
		result = err_set(err, ENOMEM, "no memory");
	if (!result)
		result = server_start(&daemon->extender, &daemon->server, err);
	if (!result && *settings->page_bind)
		result = show_page(daemon, err);
	if (!result && *settings->webhook_secret)
		result = make_certificate(daemon, err);
	if (result) {
		daemon_stop(daemon);
		return result;
	}
	loop_timer_set(loop, &daemon->tick, clock_now_ns() + TICK_NS);
	*ret_daemon = daemon;
	return 0;
}

void daemon_stop(struct daemon *daemon)
{
	if (!daemon)
		return;
	loop_timer_clear(daemon->loop, &daemon->tick);
	own_certificate_stop(daemon->own_certificate);
	server_stop(daemon->server);
	web_stop(daemon->web);
	series_clear(&daemon->series);
	extender_stop_binds(&daemon->extender);
	lease_stop(daemon->lease);
	cluster_stop(daemon->extender.cluster);
	if (daemon->client)
		kube_client_free(daemon->client);
	if (daemon->events_client)
		kube_client_free(daemon->events_client);
	event_log_free(daemon->extender.events);
	free(daemon);
}

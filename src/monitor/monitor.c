/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor as a whole. */
#include "monitor/monitor.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/access.h"
#include "kube/client.h"
#include "kube/event.h"
#include "monitor/audit.h"
#include "monitor/feedback.h"
#include "monitor/garbage.h"
#include "monitor/local.h"
#include "monitor/metrics.h"
#include "monitor/page.h"
#include "monitor/record.h"
#include "net/address.h"
#include "net/http_server.h"
#include "node/nvml_library.h"
#include "web/web.h"

#define LOG_TOPIC	 LOG_NET
#define SECOND_NS	 1000000000ull
#define LOOK_NS		 (5 * SECOND_NS)
#define CONNECTIONS_MOST 256
#define OF_A_CLIENT_MOST 8 /* so that no pod keeps the kubelet and Prometheus out */
#define SILENCE_S	 60
#define KEPT_BYTES	 (4 << 20)
#define EVENTS_PER_S	 1
#define EVENTS_BURST	 10

struct monitor {
	struct loop *loop;
	const struct monitor_settings *settings;
	struct kube_client *client;
	struct kube_client *event_client;
	struct event_log *events;
	struct pod_names *pods;
	struct audit_settings audit_settings;
	struct audit *audit;
	struct record_settings record_settings;
	struct record *record; /* NULL: the kubelet is not asked */
	struct http_server *server;
	struct page *page; /* NULL: there is none */
	struct web *web;
	struct nvml_library nvml;
	struct inventory devices;
	struct sites sites; /* of slices of `vgpu run`, as the last look found them */
	struct loop_timer look, audit_due;
	bool has_nvml, is_nvml_missed; /* the latter was said */
};

/*
 * A driver may be loaded, or replaced, after this program has begun. A device that it told once and tells no longer is
 * kept, so that its loss is seen; one that another driver does not tell is gone.
 */
static void find_devices(struct monitor *m)
{
	struct inventory known = m->devices;
	struct err err = ERR_NULL;
	int r = 0;

	if (m->has_nvml && nvml_session_is_lost(&m->nvml.session)) {
		nvml_library_close(&m->nvml);
		m->has_nvml = false;
	}
	if (!m->has_nvml)
		known.count = 0;
	if (!m->has_nvml) {
		r = nvml_library_open(m->settings->nvml, &m->nvml, &err);
		m->has_nvml = r == 0;
	}
	m->devices.count = 0;
	if (m->has_nvml && inventory_read(&m->nvml.driver, &m->devices, &err))
		m->devices.count = 0;
	inventory_keep(&m->devices, &known);
	if (r && !m->is_nvml_missed)
		log_warn("there is no figure of devices", STR("why", err.text));
	m->is_nvml_missed = r != 0;
}

/* Who may read /tmp may have filled it: that is looked through here, and by no scrape. */
static void find_local(struct monitor *m)
{
	struct err err = ERR_NULL;

	sites_clear(&m->sites);
	if (sites_find_folders(&m->sites, &err))
		log_warn("slices of this machine's users are not told", STR("why", err.text));
}

static int read_scan(const struct monitor *m, bool has_views, struct scan *ret_scan)
{
	const struct scan_place place = {m->settings->hook, m->settings->shares};

	return scan_read(&place, &m->devices, has_views, ret_scan);
}

static void tell(const struct scan *scan)
{
	_cleanup_free_ const struct hami_figures **figures =
		calloc(scan->count + 1, sizeof(*figures));
	_cleanup_free_ struct feedback *answers = calloc(scan->count + 1, sizeof(*answers));

	if (!figures || !answers)
		return;
	for (size_t i = 0; i < scan->count; i++)
		figures[i] = &scan->list[i].figures;
	if (feedback_decide(figures, scan->count, answers))
		return;
	for (size_t i = 0; i < scan->count; i++)
		if (scan->list[i].fd >= 0 &&
			hami_write(scan->list[i].fd, answers[i].recent_launches,
				answers[i].is_limited) < 0)
			log_warn("a container cannot be told whether it may work",
				STR("container", scan->list[i].name));
}

static struct books books_of(const struct monitor *m, const V1__ListPodResourcesResponse *answer)
{
	return (struct books){answer, m->settings->resource, m->pods};
}

/* What is told, as it is now. */
struct telling {
	struct scan scan, local;
	struct metrics_source source;
};

static void telling_clear(struct telling *telling)
{
	scan_clear(&telling->scan);
	scan_clear(&telling->local);
}

static int telling_read(const struct monitor *m, struct telling *t)
{
	int r = read_scan(m, true, &t->scan);

	if (r)
		return r;
	t->source = (struct metrics_source){.node = m->settings->node,
		.scan = &t->scan,
		.local = &t->local,
		.devices = &m->devices,
		.nvml = m->has_nvml ? &m->nvml.driver : NULL,
		.pods = m->pods,
		.audit = m->audit,
		.books = books_of(m, record_answer(m->record)),
		.now_s = (uint64_t)time(NULL),
		.has_legacy = m->settings->has_legacy};
	return local_read(&m->sites, &m->devices, &t->local);
}

/* With the devices as they were found last. */
static void look(struct monitor *m)
{
	_cleanup_(telling_clear) struct telling now = {.scan.count = 0};
	int r;

	find_local(m);
	r = m->page ? telling_read(m, &now) : read_scan(m, false, &now.scan);
	if (r == 0)
		tell(&now.scan);
	if (r == 0 && m->page)
		page_sample(m->page, &now.source);
	loop_timer_set(m->loop, &m->look, clock_now_ns() + LOOK_NS);
}

static void look_again(void *context)
{
	find_devices(context);
	look(context);
}

static void audit(void *context)
{
	_cleanup_(scan_clear) struct scan scan = {.count = 0};
	struct monitor *m = context;

	if (m->has_nvml && m->pods && read_scan(m, false, &scan) == 0)
		audit_look(m->audit, &scan, &m->devices, &m->nvml.driver, m->pods);
	garbage_collect(m->settings->hook, m->settings->shares, m->pods);
	if (m->record)
		record_ask(m->record);
	loop_timer_set(m->loop, &m->audit_due, clock_now_ns() + m->settings->audit_s * SECOND_NS);
}

/* The slices are looked at anew: the kubelet's word is of this moment. */
static void record_came(void *context, const V1__ListPodResourcesResponse *answer)
{
	_cleanup_(scan_clear) struct scan scan = {.count = 0};
	struct monitor *m = context;
	const struct scan_place place = {m->settings->hook, m->settings->shares};
	const struct books books = books_of(m, answer);

	if (read_scan(m, false, &scan) == 0)
		books_compare(&books, &place, &scan, m->audit);
}

static int write_text(struct monitor *m, char **ret_text)
{
	_cleanup_(telling_clear) struct telling now = {.scan.count = 0};
	char *text = NULL;
	size_t bytes;
	FILE *out;
	int r = telling_read(m, &now);

	if (r)
		return r;
	out = open_memstream(&text, &bytes);
	if (!out)
		return -ENOMEM;
	metrics_write(out, &now.source);
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	return 0;
}

static int write_page(void *context, FILE *out)
{
	_cleanup_(telling_clear) struct telling now = {.scan.count = 0};
	struct monitor *m = context;
	int r = telling_read(m, &now);

	if (r)
		return r;
	page_sample(m->page, &now.source);
	page_write(m->page, &now.source, out);
	return 0;
}

static int write_history(void *context, FILE *out)
{
	const struct monitor *m = context;

	page_write_history(m->page, out);
	return 0;
}

static void say(struct http_call *call, unsigned status, const char *text)
{
	http_answer(call, status, "text/plain", text, strlen(text));
}

static void serve_metrics(struct monitor *m, struct http_call *call)
{
	_cleanup_free_ char *text = NULL;

	if (write_text(m, &text))
		say(call, 500, "no memory\n");
	else
		http_answer(
			call, 200, "text/plain; version=0.0.4; charset=utf-8", text, strlen(text));
}

static void serve_health(struct monitor *m, struct http_call *call)
{
	say(call, 200, "");
}

static void serve_readiness(struct monitor *m, struct http_call *call)
{
	if (m->pods && !pod_names_are_known(m->pods))
		say(call, 503, "the node's pods are not known yet\n");
	else
		say(call, 200, "");
}

static void handle(void *context, struct http_call *call)
{
	static const struct {
		const char *path;
		void (*serve)(struct monitor *m, struct http_call *call);
	} routes[] = {{"/metrics", serve_metrics}, {"/healthz", serve_health},
		{"/readyz", serve_readiness}};

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (strcmp(routes[i].path, http_call_path(call)) != 0)
			continue;
		if (strcmp(http_call_method(call), "GET") != 0)
			say(call, 405, "method not allowed\n");
		else
			routes[i].serve(context, call);
		return;
	}
	say(call, 404, "404 page not found\n");
}

/* Every call is answered at once. */
static void gone(void *context, struct http_call *call)
{
}

static int listen_at(struct monitor *m, const char *where, struct err *err)
{
	char address[ADDRESS_BYTES];
	struct http_server_settings settings = {.address = address,
		.connections_most = CONNECTIONS_MOST,
		.client_connections_most = OF_A_CLIENT_MOST,
		.silence_s = SILENCE_S};
	int r;

	if (!address_parse(where, address, &settings.port))
		return err_set(err, EINVAL,
			"--metrics-bind-address is '%.80s': ADDRESS:PORT is right", where);
	r = http_server_start(m->loop, &settings, handle, gone, m, &m->server, err);
	if (!r)
		log_info("metrics are served", STR("at", where),
			U64("port", http_server_port(m->server)));
	return r;
}

static int show_page(struct monitor *m, struct err *err)
{
	const struct web_source source = {write_page, write_history, m};

	m->page = page_new();
	if (!m->page)
		return err_set(err, ENOMEM, "no memory");
	return web_start(m->loop, m->settings->page_bind, &source, &m->web, err);
}

/* Events never delay the watch of the pods, and a node that tells too many tells fewer. */
static int open_events(struct monitor *m, const struct kube_access *access, struct err *err)
{
	struct kube_settings settings = kube_settings_default;
	int r;

	settings.calls_per_s = EVENTS_PER_S;
	settings.burst = EVENTS_BURST;
	r = kube_client_new(m->loop, access, &settings, &m->event_client, err);
	if (!r && event_log_new(m->event_client, "vgpu-monitor", &m->events))
		r = err_set(err, ENOMEM, "no memory");
	return r;
}

/* Of pods most is in these. */
static const char *const unused[] = {"managedFields", "conditions", "env", "envFrom", "volumes",
	"volumeMounts", "tolerations", "command", "args", NULL};

static int follow_pods(struct monitor *m, struct err *err)
{
	struct kube_settings settings = kube_settings_default;
	struct kube_access access = KUBE_ACCESS_NULL;
	int r = kube_access_find(NULL, NULL, &access, err);

	settings.unused = unused;
	if (!r)
		r = kube_client_new(m->loop, &access, &settings, &m->client, err);
	if (!r && pod_names_start(m->client, m->settings->node, m->settings->resource, &m->pods))
		r = err_set(err, ENOMEM, "no memory");
	if (!r)
		r = open_events(m, &access, err);
	if (!r && *m->settings->pod_resources)
		r = record_new(m->loop, &m->record_settings, &m->record, err);
	kube_access_deinit(&access);
	return r;
}

static void found(void *context, const struct audit_finding *finding)
{
	static const char *const reasons[] = {"VgpuProcessOutsideSlice", "VgpuMemoryAboveQuota",
		"VgpuComputeAboveCap", "VgpuSliceNotAsGiven"};
	struct monitor *m = context;
	char text[640];
	const char *said = text;

	snprintf(text, sizeof(text), "%s%s", finding->sentence,
		finding->is_ended ? "; the process was ended" : "");
	log_warn("a container has other than it was granted",
		STR("namespace", finding->pod->namespace), STR("pod", finding->pod->name),
		STR("why", said));
	if (m->events)
		event_tell(m->events, &(struct event){.namespace = finding->pod->namespace,
					      .pod = finding->pod->name,
					      .uid = finding->pod->uid,
					      .reason = reasons[finding->kind],
					      .message = said,
					      .is_warning = true});
}

static int begin_audits(struct monitor *m, struct err *err)
{
	m->audit_settings =
		(struct audit_settings){.ended = m->settings->ended, .found = found, .context = m};
	return audit_new(&m->audit_settings, &m->audit) ? err_set(err, ENOMEM, "no memory") : 0;
}

int monitor_start(struct loop *loop, const struct monitor_settings *settings,
	struct monitor **ret_monitor, struct err *err)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_set(err, ENOMEM, "no memory");
	/* A scrape takes a megabyte or two for a moment. Given back each time, their pages were a third of its cost. */
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	m->loop = loop;
	m->settings = settings;
	m->record_settings = (struct record_settings){settings->pod_resources, record_came, m};
	m->look = (struct loop_timer){.due = look_again, .context = m};
	m->audit_due = (struct loop_timer){.due = audit, .context = m};
	find_devices(m); /* before anybody is told that there is something to ask */
	r = begin_audits(m, err);
	if (!r && *settings->node)
		r = follow_pods(m, err);
	if (!r && *settings->metrics_bind)
		r = listen_at(m, settings->metrics_bind, err);
	if (!r && *settings->page_bind)
		r = show_page(m, err);
	if (r) {
		monitor_stop(m);
		return r;
	}
	look(m);
	audit(m);
	*ret_monitor = m;
	return 0;
}

void monitor_stop(struct monitor *m)
{
	if (!m)
		return;
	loop_timer_clear(m->loop, &m->look);
	loop_timer_clear(m->loop, &m->audit_due);
	http_server_stop(m->server);
	web_stop(m->web);
	page_free(m->page);
	record_free(m->record);
	pod_names_stop(m->pods);
	event_log_free(m->events);
	if (m->event_client)
		kube_client_free(m->event_client);
	if (m->client)
		kube_client_free(m->client);
	audit_free(m->audit);
	sites_clear(&m->sites);
	nvml_library_close(&m->nvml);
	free(m);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor as a whole. */
#include "monitor/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/access.h"
#include "kube/client.h"
#include "monitor/feedback.h"
#include "monitor/metrics.h"
#include "net/address.h"
#include "net/http_server.h"
#include "node/nvml_library.h"

#define LOG_TOPIC	 LOG_NET
#define SECOND_NS	 1000000000ull
#define LOOK_NS		 (5 * SECOND_NS)
#define CONNECTIONS_MOST 64
#define SILENCE_S	 60

struct monitor {
	struct loop *loop;
	const struct monitor_settings *settings;
	struct kube_client *client;
	struct pod_names *pods;
	struct http_server *server;
	struct nvml_library nvml;
	struct inventory devices;
	struct loop_timer look;
	bool has_nvml, is_nvml_missed; /* the latter was said */
};

/* A driver may be loaded, or replaced, after this program has begun. */
static void find_devices(struct monitor *m)
{
	struct err err = ERR_NULL;
	int r = 0;

	if (m->has_nvml && nvml_session_is_lost(&m->nvml.session)) {
		nvml_library_close(&m->nvml);
		m->has_nvml = false;
	}
	if (!m->has_nvml) {
		r = nvml_library_open(m->settings->nvml, &m->nvml, &err);
		m->has_nvml = r == 0;
	}
	m->devices.count = 0;
	if (m->has_nvml && inventory_read(&m->nvml.driver, &m->devices, &err))
		m->devices.count = 0;
	if (r && !m->is_nvml_missed)
		log_warn("there is no figure of devices", STR("why", err.text));
	m->is_nvml_missed = r != 0;
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
		if (hami_write(scan->list[i].fd, answers[i].recent_launches,
			    answers[i].is_limited) < 0)
			log_warn("a container cannot be told whether it may work",
				STR("container", scan->list[i].name));
}

static void look(void *context)
{
	_cleanup_(scan_clear) struct scan scan = {.count = 0};
	struct monitor *m = context;

	find_devices(m);
	if (scan_read(m->settings->hook, &m->devices, &scan) == 0)
		tell(&scan);
	loop_timer_set(m->loop, &m->look, clock_now_ns() + LOOK_NS);
}

static int write_text(struct monitor *m, char **ret_text)
{
	_cleanup_(scan_clear) struct scan scan = {.count = 0};
	struct metrics_source source = {.node = m->settings->node,
		.scan = &scan,
		.devices = &m->devices,
		.nvml = m->has_nvml ? &m->nvml.driver : NULL,
		.pods = m->pods,
		.now_s = (uint64_t)time(NULL),
		.has_legacy = m->settings->has_legacy};
	char *text = NULL;
	size_t bytes;
	FILE *out;
	int r = scan_read(m->settings->hook, &m->devices, &scan);

	if (r)
		return r;
	out = open_memstream(&text, &bytes);
	if (!out)
		return -ENOMEM;
	metrics_write(out, &source);
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
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
	struct http_server_settings settings = {
		.address = address, .connections_most = CONNECTIONS_MOST, .silence_s = SILENCE_S};
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

static int follow_pods(struct monitor *m, struct err *err)
{
	struct kube_access access = KUBE_ACCESS_NULL;
	int r = kube_access_find(NULL, NULL, &access, err);

	if (!r)
		r = kube_client_new(m->loop, &access, &kube_settings_default, &m->client, err);
	if (!r && pod_names_start(m->client, m->settings->node, &m->pods))
		r = err_set(err, ENOMEM, "no memory");
	kube_access_deinit(&access);
	return r;
}

int monitor_start(struct loop *loop, const struct monitor_settings *settings,
	struct monitor **ret_monitor, struct err *err)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int r = 0;

	if (!m)
		return err_set(err, ENOMEM, "no memory");
	m->loop = loop;
	m->settings = settings;
	m->look = (struct loop_timer){.due = look, .context = m};
	if (*settings->node)
		r = follow_pods(m, err);
	if (!r && *settings->metrics_bind)
		r = listen_at(m, settings->metrics_bind, err);
	if (r) {
		monitor_stop(m);
		return r;
	}
	look(m);
	*ret_monitor = m;
	return 0;
}

void monitor_stop(struct monitor *m)
{
	if (!m)
		return;
	loop_timer_clear(m->loop, &m->look);
	http_server_stop(m->server);
	pod_names_stop(m->pods);
	if (m->client)
		kube_client_free(m->client);
	nvml_library_close(&m->nvml);
	free(m);
}

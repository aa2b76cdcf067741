/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler serves by HTTP.
 *
 * One port has the routes of kube-scheduler and those of the API server, as HAMi's has. The first two reserve and bind
 * without a question about who asks, so they are for clients on this host, or with a certificate.
 */
#include "scheduler/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"
#include "net/http_server.h"
#include "scheduler/admission.h"
#include "scheduler/certificate.h"
#include "scheduler/client_rate.h"
#include "scheduler/metrics.h"

#define LOG_TOPIC LOG_NET

#define BODY_MOST_BYTES \
	(8u << 20) /* a pod, and the names of 5,000 nodes or some hundred whole ones */
#define BODIES_OF_A_CLIENT_MOST_BYTES (64u << 20)
/* each bind that waits for its node's lock has one */
#define CONNECTIONS_MOST 1024
#define OF_A_CLIENT_MOST 768
#define SILENCE_S	 60
#define SILENT_NS	 (180ull * 1000000000) /* the API server says something each minute */

struct server {
	struct extender *extender;
	struct http_server *main, *metrics;
	struct certificate certificate,
		own; /* own: what was taken; without the clients' authority */
	struct client_rate rate;
	bool is_wrong; /* the certificate, which was said */
};

static void say(struct http_call *call, unsigned status, const char *text)
{
	http_answer(call, status, "text/plain", text, strlen(text));
}

static void serve_health(struct server *server, struct http_call *call)
{
	say(call, 200, "");
}

/* A replica that does not lead is ready, too: it serves the webhook, and leads as soon as it is to. */
static void serve_readiness(struct server *server, struct http_call *call)
{
	const struct cluster *cluster = server->extender->cluster;

	if (!cluster_is_known(cluster))
		say(call, 503, "the cluster is not known yet\n");
	else if (cluster_silence_ns(cluster) > SILENT_NS)
		say(call, 503, "the API server is not heard of\n");
	else
		say(call, 200, "");
}

static void review_pod(struct server *server, struct http_call *call,
	int (*answer_review)(const struct admission_rules *rules, const struct books *books,
		const json_t *review, json_t **ret_answer, struct err *err))
{
	struct extender *extender = server->extender;
	uint64_t began_ns = clock_now_ns();
	struct err err = ERR_NULL;
	json_t *review = extender_read(call, &err), *answer = NULL;
	const json_t *allowed;

	if (review && answer_review(&extender->settings->rules, cluster_books(extender->cluster),
			      review, &answer, &err))
		answer = NULL;
	allowed = json_object_get(json_object_get(answer, "response"), "allowed");
	measure_add(extender->measure, MEASURE_WEBHOOK, began_ns, !json_is_true(allowed));
	json_decref(review);
	if (answer)
		extender_answer(call, answer);
	else
		say(call, 400, err.text);
}

static void serve_webhook(struct server *server, struct http_call *call)
{
	review_pod(server, call, admission_answer);
}

static void serve_guard(struct server *server, struct http_call *call)
{
	review_pod(server, call, admission_guard);
}

static void serve_filter(struct server *server, struct http_call *call)
{
	extender_filter(server->extender, call);
}

static void serve_bind(struct server *server, struct http_call *call)
{
	extender_bind(server->extender, call);
}

static void serve_preempt(struct server *server, struct http_call *call)
{
	extender_preempt(server->extender, call);
}

static const struct route {
	const char *path, *method;
	bool is_for_trusted;
	void (*serve)(struct server *server, struct http_call *call);
} routes[] = {
	{"/filter", "POST", true, serve_filter},
	{"/bind", "POST", true, serve_bind},
	{"/preempt", "POST", true, serve_preempt},
	{"/webhook", "POST", false, serve_webhook},
	{"/guard", "POST", false, serve_guard},
	{"/healthz", "GET", false, serve_health},
	{"/readyz", "GET", false, serve_readiness},
};

/* kube-scheduler, on this host or with a certificate, asks as often as it likes. */
static bool is_too_often(struct server *server, const struct http_call *call)
{
	if (http_call_is_trusted(call))
		return false;
	if (client_rate_take(&server->rate, http_call_client(call), clock_now_ns()))
		return false;
	server->extender->measure->turned_away++;
	return true;
}

static void handle(void *context, struct http_call *call)
{
	if (is_too_often(context, call)) {
		say(call, 429, "too many requests\n");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (strcmp(routes[i].path, http_call_path(call)) != 0)
			continue;
		if (strcmp(routes[i].method, http_call_method(call)) != 0)
			say(call, 405, "method not allowed\n");
		else if (routes[i].is_for_trusted && !http_call_is_trusted(call))
			say(call, 403, "for clients on this host, or with a certificate\n");
		else
			routes[i].serve(context, call);
		return;
	}
	say(call, 404, "404 page not found\n");
}

static void handle_metrics(void *context, struct http_call *call)
{
	const struct server *server = context;
	char *text = NULL;

	if (strcmp(http_call_path(call), "/metrics") || strcmp(http_call_method(call), "GET"))
		say(call, 404, "404 page not found\n");
	else if (metrics_write(server->extender, &text))
		say(call, 500, "no memory\n");
	else
		http_answer(
			call, 200, "text/plain; version=0.0.4; charset=utf-8", text, strlen(text));
	free(text);
}

static void gone(void *context, struct http_call *call)
{
	extender_gone(call);
}

static int listen_at(struct loop *loop, struct server *server, const char *where,
	const struct certificate *certificate, http_handle_fn *handler,
	struct http_server **ret_http, struct err *err)
{
	char address[ADDRESS_BYTES];
	struct http_server_settings settings = {.address = address,
		.certificate = certificate ? certificate->texts[0] : NULL,
		.key = certificate ? certificate->texts[1] : NULL,
		.client_authority = certificate ? certificate->texts[2] : NULL,
		.body_most_bytes = certificate ? BODY_MOST_BYTES : 0,
		.client_bodies_most_bytes = BODIES_OF_A_CLIENT_MOST_BYTES,
		.connections_most = CONNECTIONS_MOST,
		.client_connections_most = OF_A_CLIENT_MOST,
		.silence_s = SILENCE_S};

	if (!address_parse(where, address, &settings.port))
		return err_set(err, EINVAL, "'%.80s' is no ADDRESS:PORT", where);
	return http_server_start(loop, &settings, handler, gone, server, ret_http, err);
}

static int copy_own(const struct certificate *own, struct certificate *certificate, struct err *err)
{
	for (size_t i = 0; i < 2; i++) {
		if (!own->texts[i])
			continue;
		certificate->texts[i] = strdup(own->texts[i]);
		if (!certificate->texts[i])
			return err_set(err, ENOMEM, "no memory");
	}
	return 0;
}

static int read_certificate(
	const struct server *server, struct certificate *ret_certificate, struct err *err)
{
	const struct settings *settings = server->extender->settings;
	const char *const paths[] = {
		settings->cert_file, settings->key_file, settings->client_ca_file};
	int result = certificate_read(paths, ret_certificate, err);

	if (!result)
		result = copy_own(&server->own, ret_certificate, err);
	if (result)
		certificate_deinit(ret_certificate);
	return result;
}

/* The certificate is taken over where it does. */
static int begin(struct server *server, struct certificate *certificate, struct err *err)
{
	const struct settings *settings = server->extender->settings;
	int result = listen_at(server->extender->loop, server, settings->http_bind, certificate,
		handle, &server->main, err);

	if (result)
		return result;
	log_info("requests are served", STR("at", settings->http_bind),
		U64("port", http_server_port(server->main)),
		STR("by", certificate->texts[0] ? "https" : "http"));
	server->certificate = *certificate;
	*certificate = (struct certificate){{NULL}};
	return 0;
}

static int begin_all(struct server *server, struct err *err)
{
	const struct settings *settings = server->extender->settings;
	struct certificate certificate = {{NULL}};
	int result = 0;

	if (*settings->metrics_bind)
		result = listen_at(server->extender->loop, server, settings->metrics_bind, NULL,
			handle_metrics, &server->metrics, err);
	if (server->metrics)
		log_info("metrics are served", STR("at", settings->metrics_bind),
			U64("port", http_server_port(server->metrics)));
	if (!result && !*settings->webhook_secret) {
		result = read_certificate(server, &certificate, err);
		if (!result)
			result = begin(server, &certificate, err);
		certificate_deinit(&certificate);
	}
	return result;
}

int server_start(struct extender *extender, struct server **ret_server, struct err *err)
{
	struct server *server = calloc(1, sizeof(*server));
	int result;

	if (!server)
		return err_set(err, ENOMEM, "no memory");
	server->extender = extender;
	server->rate.per_s = (unsigned)extender->settings->client_calls_per_s;
	server->rate.burst = (unsigned)extender->settings->client_burst;
	result = begin_all(server, err);
	if (result)
		server_stop(server);
	else
		*ret_server = server;
	return result;
}

void server_stop(struct server *server)
{
	if (!server)
		return;
	http_server_stop(server->main);
	http_server_stop(server->metrics);
	certificate_deinit(&server->certificate);
	certificate_deinit(&server->own);
	free(server);
}

static int install(struct server *server, struct certificate *fresh, struct err *err)
{
	int result;

	if (!server->main)
		return begin(server, fresh, err);
	if (certificate_is_same(fresh, &server->certificate))
		return 0;
	result = http_server_renew(
		server->main, fresh->texts[0], fresh->texts[1], fresh->texts[2], err);
	if (result)
		return result;
	log_info("the certificate is renewed");
	certificate_deinit(&server->certificate);
	server->certificate = *fresh;
	*fresh = (struct certificate){{NULL}};
	return 0;
}

/* Files that are replaced one after another do not go together for a moment: they are looked at again. */
void server_renew(struct server *server)
{
	struct certificate fresh = {{NULL}};
	struct err err = ERR_NULL;
	int result;

	if (!server->certificate.texts[0] && !server->own.texts[0])
		return;
	result = read_certificate(server, &fresh, &err);
	if (!result)
		result = install(server, &fresh, &err);
	certificate_deinit(&fresh);
	if (result && !server->is_wrong)
		log_warn("the certificate stays as it was", STR("why", err.text));
	server->is_wrong = result;
}

void server_take_certificate(struct server *server, const char *certificate, const char *key)
{
	struct certificate own = {{strdup(certificate), strdup(key), NULL}};

	if (!own.texts[0] || !own.texts[1]) {
		certificate_deinit(&own);
		log_error("no memory for a certificate");
		return;
	}
	certificate_deinit(&server->own);
	server->own = own;
	server_renew(server);
}

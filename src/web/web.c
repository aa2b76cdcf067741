/* SPDX-License-Identifier: Apache-2.0 */
/* The page that a daemon serves to people. */
#include "web/web.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"
#include "net/http_server.h"
#include "web/assets.h"

#define LOG_TOPIC	 LOG_NET
#define CONNECTIONS_MOST 64
#define OF_A_CLIENT_MOST 16
#define SILENCE_S	 30
#define FRESH_NS	 900000000ull /* many who look cost no more than one */

/* A text that is made anew when it is asked for and no longer fresh. */
struct text {
	char *bytes;
	size_t count;
	uint64_t made_ns;
};

struct web {
	struct http_server *server;
	struct web_source source;
	struct text state, history;
	bool is_local;
};

static void answer(
	struct http_call *call, unsigned status, const char *type, const char *bytes, size_t count)
{
	const struct http_header headers[] = {
		{"Content-Type", type},
		{"Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
			"'none'"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cache-Control", "no-store"},
		{"Allow", "GET, HEAD"},
	};
	size_t header_count = ARRAY_SIZE(headers) - (status != 405);

	http_answer_with(call, status, headers, header_count, bytes, count);
}

static void say(struct http_call *call, unsigned status, const char *words)
{
	answer(call, status, "text/plain; charset=utf-8", words, strlen(words));
}

static int renew(
	struct text *text, int (*write)(void *context, FILE *out), void *context, uint64_t now_ns)
{
	char *bytes = NULL;
	size_t count;
	FILE *out = open_memstream(&bytes, &count);
	int r;

	if (!out)
		return -ENOMEM;
	r = write(context, out);
	if (fclose(out) && !r)
		r = -ENOMEM;
	if (r) {
		free(bytes);
		return r;
	}
	free(text->bytes);
	*text = (struct text){bytes, count, now_ns};
	return 0;
}

static void serve(struct web *web, struct http_call *call, struct text *text,
	int (*write)(void *context, FILE *out))
{
	uint64_t now_ns = clock_now_ns();

	if ((!text->bytes || now_ns - text->made_ns >= FRESH_NS) &&
		renew(text, write, web->source.context, now_ns))
		say(call, 503, "it cannot be told now\n");
	else
		answer(call, 200, "application/json", text->bytes, text->count);
}

/* An IP address, or localhost: what a browser shows in its address line where the page was opened on this host. */
static bool names_this_host(const char *host)
{
	size_t length = host ? strcspn(host, ":") : 0;

	if (!host || *host == '[')
		return true;
	if (length == strlen("localhost") && !strncasecmp(host, "localhost", length))
		return true;
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)host[i]) && host[i] != '.')
			return false;
	return length;
}

static void handle(void *context, struct http_call *call)
{
	const char *method = http_call_method(call), *path = http_call_path(call);
	struct web *web = context;

	if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
		say(call, 405, "this page only shows\n");
		return;
	}
	if (web->is_local && !names_this_host(http_call_header(call, "Host"))) {
		say(call, 421, "this address is only for this host\n");
		return;
	}
	for (size_t i = 0; i < asset_count; i++)
		if (!strcmp(path, assets[i].path)) {
			answer(call, 200, assets[i].type, assets[i].bytes, assets[i].count);
			return;
		}
	if (!strcmp(path, "/state.json"))
		serve(web, call, &web->state, web->source.write_state);
	else if (!strcmp(path, "/history.json"))
		serve(web, call, &web->history, web->source.write_history);
	else
		say(call, 404, "404 page not found\n");
}

/* Every call is answered at once. */
static void gone(void *context, struct http_call *call)
{
}

static int listen_at(struct loop *loop, const char *where, struct web *web, struct err *err)
{
	char address[ADDRESS_BYTES];
	struct http_server_settings settings = {.address = address,
		.connections_most = CONNECTIONS_MOST,
		.client_connections_most = OF_A_CLIENT_MOST,
		.silence_s = SILENCE_S};
	int r;

	if (!address_parse(where, address, &settings.port))
		return err_set(
			err, EINVAL, "the page's address is '%.80s': ADDRESS:PORT is right", where);
	web->is_local = !strncmp(address, "127.", 4) || !strcmp(address, "::1");
	r = http_server_start(loop, &settings, handle, gone, web, &web->server, err);
	if (r)
		return r;
	log_info(
		"the page is served", STR("at", where), U64("port", http_server_port(web->server)));
	if (!web->is_local)
		log_warn("the page shows the names of pods to all that reach this address",
			STR("at", where));
	return 0;
}

int web_start(struct loop *loop, const char *where, const struct web_source *source,
	struct web **ret_web, struct err *err)
{
	struct web *web = calloc(1, sizeof(*web));
	int r;

	if (!web)
		return err_set(err, ENOMEM, "no memory");
	web->source = *source;
	r = listen_at(loop, where, web, err);
	if (r)
		web_stop(web);
	else
		*ret_web = web;
	return r;
}

void web_stop(struct web *web)
{
	if (!web)
		return;
	http_server_stop(web->server);
	free(web->state.bytes);
	free(web->history.bytes);
	free(web);
}

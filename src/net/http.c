/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP client in a daemon's loop.
 *
 * Bytes that libcurl delivers while it runs are only stored: they go into the exchange's buffer. When it has
 * returned, deliver() calls the callbacks. So a callback never runs inside libcurl, which could not bear to
 * be called from there.
 */
#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Probes of an idle connection: a server that vanished is noticed after 30 + 3 * 10 s. */
#define KEEP_ALIVE_IDLE_S     30L
#define KEEP_ALIVE_INTERVAL_S 10L

/* A connection that is not there by then will not be. */
#define CONNECT_MS 10000L

/*
 * A connection of HTTP/2 carries 100 exchanges, or what its server allows. Without a bound libcurl opens
 * another for each beyond that; with it they wait. Enough that a server of HTTP/1.1 can be watched and
 * called.
 */
#define CONNECTIONS 8L

struct http_exchange {
	struct http_client *client;
	struct http_exchange *next, *previous;
	CURL *easy;
	struct curl_slist *headers;
	struct http_events events;
	void *context;
	char *body; /* of what is sent once; NULL: libcurl has it */
	size_t body_bytes, sent_bytes;
	char *pending; /* bytes that data() has not been given */
	size_t pending_bytes, room_bytes, most_bytes;
	bool is_overfull, is_finished;
	CURLcode code;
	char words[CURL_ERROR_SIZE];
};

struct http_client {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer;
	struct http_exchange *first;
	char *authority, *certificate, *key;
	struct http_trust trust; /* points to the three */
	bool is_suspect; /* something timed out: the connection may be dead without a word */
	bool has_http1;	 /* the server has answered so */
};

/* A descriptor of libcurl's in the loop. */
struct socket {
	struct http_client *client;
	struct loop_watch watch;
};

static size_t keep_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct http_exchange *exchange = context;
	size_t wanted = exchange->pending_bytes + count, room = exchange->room_bytes;
	char *grown;

	exchange->is_overfull = wanted > exchange->most_bytes;
	if (exchange->is_overfull)
		return CURL_WRITEFUNC_ERROR;
	while (room < wanted)
		room = room ? room * 2 : 4096;
	if (room != exchange->room_bytes) {
		grown = realloc(exchange->pending, room);
		if (!grown)
			return CURL_WRITEFUNC_ERROR;
		exchange->pending = grown;
		exchange->room_bytes = room;
	}
	memcpy(exchange->pending + exchange->pending_bytes, bytes, count);
	exchange->pending_bytes = wanted;
	return count;
}

static void exchange_free(struct http_exchange *exchange)
{
	struct http_client *client = exchange->client;

	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else if (client->first == exchange)
		client->first = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	if (exchange->easy) {
		curl_multi_remove_handle(client->multi, exchange->easy);
		curl_easy_cleanup(exchange->easy);
	}
	curl_slist_free_all(exchange->headers);
	free(exchange->body);
	free(exchange->pending);
	free(exchange);
}

static int outcome_of(const struct http_exchange *exchange)
{
	curl_off_t ready_us = 0; /* when the request could be written */

	if (exchange->is_overfull)
		return HTTP_E_TOO_LARGE;
	switch (exchange->code) {
	case CURLE_OK:
		return 0;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return HTTP_E_NOT_SENT;
	case CURLE_OPERATION_TIMEDOUT:
		curl_easy_getinfo(exchange->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
		return ready_us ? HTTP_E_TIMED_OUT : HTTP_E_NOT_SENT;
	default:
		return HTTP_E_CUT;
	}
}

static int status_of(const struct http_exchange *exchange)
{
	long status = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static void finish(struct http_exchange *exchange)
{
	struct http_events events = exchange->events;
	void *context = exchange->context;
	char words[CURL_ERROR_SIZE];
	struct http_result result = {.outcome = outcome_of(exchange), .words = words};
	curl_off_t retry_after = 0;
	long version = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_HTTP_VERSION, &version);
	exchange->client->has_http1 |=
		version == CURL_HTTP_VERSION_1_0 || version == CURL_HTTP_VERSION_1_1;
	result.status = status_of(exchange);
	curl_easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &retry_after);
	result.retry_after_s = retry_after > 0 && retry_after < 3600 ? (unsigned)retry_after : 0;
	memcpy(words, exchange->words, sizeof(words));
	if (!*words)
		strncpy(words, curl_easy_strerror(exchange->code), sizeof(words) - 1);
	if (exchange->code == CURLE_OPERATION_TIMEDOUT)
		exchange->client->is_suspect = true;
	exchange_free(exchange);
	events.done(context, &result);
}

static void hand_over(struct http_exchange *exchange)
{
	_cleanup_free_ char *bytes = exchange->pending;
	size_t count = exchange->pending_bytes;

	exchange->pending = NULL;
	exchange->pending_bytes = exchange->room_bytes = 0;
	exchange->events.data(exchange->context, status_of(exchange), bytes, count);
}

/* After each callback the list is begun anew: the callback may have changed it. */
static bool deliver_one(struct http_client *client)
{
	for (struct http_exchange *e = client->first; e; e = e->next) {
		if (e->pending_bytes && !e->is_overfull)
			hand_over(e);
		else if (e->is_finished)
			finish(e);
		else
			continue;
		return true;
	}
	return false;
}

static void deliver(struct http_client *client)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(client->multi, &left))) {
		struct http_exchange *exchange;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
		exchange->code = message->data.result;
		exchange->is_finished = true;
	}
	while (deliver_one(client))
		;
}

static void act(struct http_client *client, curl_socket_t socket, int what)
{
	int running;

	curl_multi_socket_action(client->multi, socket, what, &running);
	deliver(client);
}

static void timer_is_due(void *context)
{
	act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
	struct http_client *client = context;

	if (timeout_ms < 0)
		loop_timer_clear(client->loop, &client->timer);
	else
		loop_timer_set(client->loop, &client->timer,
			clock_now_ns() + (uint64_t)timeout_ms * 1000000);
	return 0;
}

static void socket_is_ready(void *context, uint32_t events)
{
	struct socket *s = context;
	int what = 0;

	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	act(s->client, s->watch.fd, what);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *assigned)
{
	struct http_client *client = context;
	struct socket *s = assigned;
	uint32_t events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (s)
			loop_watch_remove(client->loop, &s->watch);
		free(s);
		return 0;
	}
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -1;
		s->client = client;
		s->watch = (struct loop_watch){.ready = socket_is_ready, .context = s};
		curl_multi_assign(client->multi, fd, s);
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	return loop_watch_add(client->loop, &s->watch, fd, events) ? -1 : 0;
}

static void set_pem(CURL *easy, const struct http_pem *pem, CURLoption as_path, CURLoption as_text)
{
	if (pem->text) {
		struct curl_blob blob = {.data = (char *)pem->text,
			.len = strlen(pem->text),
			.flags = CURL_BLOB_NOCOPY}; /* the client's, which lives longer */

		curl_easy_setopt(easy, as_text, &blob);
	} else if (pem->path) {
		curl_easy_setopt(easy, as_path, pem->path);
	}
}

static void set_trust(CURL *easy, const struct http_trust *trust)
{
	set_pem(easy, &trust->authority, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
	set_pem(easy, &trust->certificate, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
	set_pem(easy, &trust->key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 60L); /* authorities are replaced, too */
	if (trust->is_unverified) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static void set_limits(CURL *easy, const struct http_request *request)
{
	uint64_t now = clock_now_ns();

	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	if (request->deadline_ns)
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
			request->deadline_ns > now + 1000000
				? (long)((request->deadline_ns - now) / 1000000)
				: 1L);
	if (request->silence_s) {
		curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)request->silence_s);
	}
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEP_ALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEP_ALIVE_INTERVAL_S);
}

static bool set_headers(struct http_exchange *exchange, const char *const *headers)
{
	/* without "Expect", which would ask for a further turn before a body */
	struct curl_slist *grown = curl_slist_append(NULL, "Expect:");

	while (grown && headers && *headers) {
		exchange->headers = grown;
		grown = curl_slist_append(grown, *headers++);
	}
	if (!grown)
		return false;
	exchange->headers = grown;
	curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, grown);
	return true;
}

static size_t give_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http_exchange *exchange = context;
	size_t left = exchange->body_bytes - exchange->sent_bytes;

	count = count * size < left ? count * size : left;
	memcpy(bytes, exchange->body + exchange->sent_bytes, count);
	exchange->sent_bytes += count;
	return count;
}

/* libcurl asks for it before it sends a body once more, and gives up then. */
static int refuse_rewind(void *context, curl_off_t offset, int origin)
{
	return CURL_SEEKFUNC_FAIL;
}

static bool set_body(struct http_exchange *exchange, const struct http_request *request)
{
	CURL *easy = exchange->easy;

	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
	if (!request->is_once)
		return !curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body);
	exchange->body = malloc(request->body_bytes + 1);
	if (!exchange->body)
		return false;
	memcpy(exchange->body, request->body, request->body_bytes);
	exchange->body_bytes = request->body_bytes;
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
	curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
	return true;
}

static bool set_request(struct http_exchange *exchange, const struct http_request *request)
{
	CURL *easy = exchange->easy;
	struct http_client *client = exchange->client;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/*
	 * Rather wait for a connection than open a second. With HTTP/1 there is nothing to wait for, and libcurl wakes who waits when
	 * another exchange ends, which a watch does not.
	 */
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, (long)!client->has_http1);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->words);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)client->is_suspect);
	client->is_suspect = false;
	if (request->socket_path) {
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
		curl_easy_setopt(
			easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
		/* what gRPC sends on one that is idle, libcurl 7.88 takes for an error of the next exchange */
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	}
	set_trust(easy, &client->trust);
	set_limits(easy, request);
	return (!request->body || set_body(exchange, request)) &&
	       !curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) &&
	       !curl_easy_setopt(easy, CURLOPT_URL, request->url) &&
	       set_headers(exchange, request->headers);
}

int http_send(struct http_client *client, const struct http_request *request,
	const struct http_events *events, void *context, struct http_exchange **ret_exchange)
{
	struct http_exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return -ENOMEM;
	exchange->client = client;
	exchange->events = *events;
	exchange->context = context;
	exchange->most_bytes = request->most_bytes;
	exchange->easy = curl_easy_init();
	exchange->next = client->first;
	if (client->first)
		client->first->previous = exchange;
	client->first = exchange;
	if (!exchange->easy || !set_request(exchange, request) ||
		curl_multi_add_handle(client->multi, exchange->easy)) {
		exchange_free(exchange);
		return -ENOMEM;
	}
	*ret_exchange = exchange;
	return 0;
}

void http_cancel(struct http_exchange *exchange)
{
	exchange_free(exchange);
}

/* Copies a text that is given; says whether there was memory. */
static bool copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return *ret_copy || !text;
}

static struct http_pem copied(const struct http_pem *pem, const char *copy)
{
	return (struct http_pem){.text = pem->text ? copy : NULL, .path = pem->text ? NULL : copy};
}

static const char *given(const struct http_pem *pem)
{
	return pem->text ? pem->text : pem->path;
}

static bool keep_trust(struct http_client *client, const struct http_trust *trust)
{
	if (!copy_text(given(&trust->authority), &client->authority) ||
		!copy_text(given(&trust->certificate), &client->certificate) ||
		!copy_text(given(&trust->key), &client->key))
		return false;
	client->trust = (struct http_trust){
		.authority = copied(&trust->authority, client->authority),
		.certificate = copied(&trust->certificate, client->certificate),
		.key = copied(&trust->key, client->key),
		.is_unverified = trust->is_unverified,
	};
	return true;
}

int http_client_new(struct loop *loop, const struct http_trust *trust,
	struct http_client **ret_client, struct err *err)
{
	struct http_client *client;

	/* counts its calls: one for each client is right */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_set(err, EIO, "libcurl did not start");
	client = calloc(1, sizeof(*client));
	if (!client) {
		curl_global_cleanup();
		return err_set(err, ENOMEM, "no memory");
	}
	client->loop = loop;
	client->timer = (struct loop_timer){.due = timer_is_due, .context = client};
	client->multi = curl_multi_init();
	if (!client->multi || !keep_trust(client, trust)) {
		http_client_free(client);
		return err_set(err, ENOMEM, "no memory");
	}
	curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, CONNECTIONS);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	*ret_client = client;
	return 0;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	while (client->first)
		exchange_free(client->first);
	curl_multi_cleanup(client->multi);
	loop_timer_clear(client->loop, &client->timer);
	free(client->authority);
	free(client->certificate);
	free(client->key);
	free(client);
	curl_global_cleanup();
}

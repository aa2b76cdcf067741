/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the Kubernetes API server.
 *
 * A call waits for its turn (the rate, or a pause), is under way, and then either waits again or ends. Each
 * is one struct with one timer; the list of all is there for the end of the client.
 */
#include "kube/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/lines.h"
#include "kube/prune.h"
#include "kube/rate.h"
#include "kube/token.h"
#include "kube/answer.h"
#include "net/http.h"

#define SECOND_NS 1000000000ull

/* An event of a watch: an object of etcd's 1.5 MiB, and what JSON makes of it. */
#define LINE_MOST_BYTES (16u << 20)

const struct kube_settings kube_settings_default = {
	.calls_per_s = 50,
	.burst = 100,
	.deadline_ns = 30 * SECOND_NS,
	.attempt_ns = 10 * SECOND_NS,
	.first_pause_ns = SECOND_NS / 5,
	.most_pause_ns = 10 * SECOND_NS,
	.answer_most_bytes = 64u << 20,
	.cancel_fd = -1,
};

struct kube_call {
	struct kube_client *client;
	struct kube_call *next, *previous;
	struct http_exchange *exchange; /* NULL: waits */
	struct loop_timer timer;
	const struct verb *verb;
	char *url, *body;
	uint64_t deadline_ns;
	unsigned attempts, silence_s;
	unsigned token_number; /* of the token that the attempt has */
	bool was_renewed;      /* tried with another token once */
	struct lines lines;
	struct kube_answer answer;
	kube_take_fn *take; /* of a stream */
	kube_done_fn *done;
	void *context;
};

struct kube_client {
	struct loop *loop;
	struct http_client *http;
	struct kube_settings settings;
	struct kube_token token;
	struct rate rate;
	char *server;
	struct kube_call *first;
	uint64_t sent;
	struct loop_watch cancel_watch;
	bool is_cancelled;
};

static const struct verb get = {.method = "GET", .is_repeatable = true};
static const struct verb stream = {.method = "GET", .is_stream = true};
static const struct verb create = {.method = "POST", .content = "Content-Type: application/json"};
static const struct verb patch_verb = {.method = "PATCH",
	.content = "Content-Type: application/merge-patch+json",
	.is_repeatable = true};
static const struct verb patch_if = {.method = "PATCH",
	.content = "Content-Type: application/json-patch+json",
	.is_repeatable = true};

struct loop *kube_client_loop(const struct kube_client *client)
{
	return client->loop;
}

uint64_t kube_client_sent(const struct kube_client *client)
{
	return client->sent;
}

uint64_t kube_client_pause_ns(const struct kube_client *client, unsigned failed)
{
	uint32_t random = 0;

	/* without a random number the pause is the shortest; that is no harm */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return rate_pause_ns(
		failed, client->settings.first_pause_ns, client->settings.most_pause_ns, random);
}

static void call_free(struct kube_call *call)
{
	struct kube_client *client = call->client;

	if (call->previous)
		call->previous->next = call->next;
	else
		client->first = call->next;
	if (call->next)
		call->next->previous = call->previous;
	if (call->exchange)
		http_cancel(call->exchange);
	loop_timer_clear(client->loop, &call->timer);
	lines_clear(&call->lines);
	kube_answer_clear(&call->answer);
	free(call->url);
	free(call->body);
	free(call);
}

void kube_cancel(struct kube_call *call)
{
	if (call)
		call_free(call);
}

/* The call is gone before its callback comes, which may begin another or cancel any. */
static void call_end(struct kube_call *call, const struct kube_attempt *attempt)
{
	kube_done_fn *done = call->done;
	void *context = call->context;
	struct kube_answer answer = call->answer;
	struct kube_result result = {
		.outcome = attempt->outcome,
		.status = answer.status,
		.attempts = call->attempts,
		.body = attempt->outcome ? NULL : answer.json,
		.words = attempt->words.text,
	};

	call->answer = (struct kube_answer){0};
	call_free(call);
	done(context, &result);
	kube_answer_clear(&answer);
}

/* Not before the pause is over, and then by the rate. Ends the call where its deadline comes first. */
static void call_again(
	struct kube_call *call, uint64_t pause_ns, const struct kube_attempt *attempt)
{
	uint64_t at_ns = clock_now_ns() + pause_ns;

	if (at_ns >= call->deadline_ns) {
		call_end(call, attempt);
		return;
	}
	kube_answer_clear(&call->answer);
	loop_timer_set(call->client->loop, &call->timer, rate_take(&call->client->rate, at_ns));
}

static void exchange_done(void *context, const struct http_result *result)
{
	struct kube_call *call = context;
	struct kube_client *client = call->client;
	struct kube_attempt attempt;
	bool is_stranger;

	call->exchange = NULL;
	call->answer.status = result->status;
	call->answer.unused = client->settings.unused;
	kube_answer_classify(call->verb, result, &call->answer, &attempt);
	is_stranger = attempt.outcome == KUBE_E_DENIED && call->answer.status == 401;
	if (is_stranger)
		kube_token_renew(&client->token, clock_now_ns());
	/* It may have been another call that found the new token. */
	if (is_stranger && !call->was_renewed && client->token.number != call->token_number) {
		call->was_renewed = true;
		call_again(call, 0, &attempt);
	} else if (attempt.may_repeat) {
		call_again(call,
			result->retry_after_s ? result->retry_after_s * SECOND_NS
					      : kube_client_pause_ns(client, call->attempts),
			&attempt);
	} else {
		call_end(call, &attempt);
	}
}

static int take_line(void *context, const char *line, size_t bytes)
{
	struct kube_call *call = context;
	json_t *parsed = prune_load(line, bytes, call->client->settings.unused);
	int result = parsed ? call->take(call->context, parsed) : -EBADMSG;

	json_decref(parsed);
	return result;
}

static void exchange_data(void *context, int status, const char *bytes, size_t count)
{
	struct kube_call *call = context;
	int result;

	if (call->verb->is_stream && status == 200)
		result = lines_add(&call->lines, bytes, count, LINE_MOST_BYTES, take_line, call);
	else
		result = kube_answer_add(
			&call->answer, bytes, count, call->client->settings.answer_most_bytes);
	if (result) {
		struct kube_attempt attempt = {.outcome = KUBE_E_NOT_UNDERSTOOD};

		err_set(&attempt.words, 0, "the answer was not understood: %s", strerror(-result));
		call->answer.status = status;
		call_end(call, &attempt);
	}
}

static int call_send(struct kube_call *call)
{
	static const struct http_events events = {exchange_data, exchange_done};
	struct kube_client *client = call->client;
	uint64_t now = clock_now_ns(), until = now + client->settings.attempt_ns;
	const char *headers[] = {
		"Accept: application/json", "User-Agent: vgpu/" VGPU_VERSION, NULL, NULL, NULL};
	size_t count = 2;
	const char *token = kube_token_header(&client->token, now);
	struct http_request request = {
		.method = call->verb->method,
		.url = call->url,
		.headers = headers,
		.body = call->body,
		.body_bytes = call->body ? strlen(call->body) : 0,
		.is_once = !call->verb->is_repeatable,
		.deadline_ns = call->deadline_ns == UINT64_MAX ? 0
			       : until < call->deadline_ns     ? until
							       : call->deadline_ns,
		.silence_s = call->silence_s,
		.most_bytes = client->settings.answer_most_bytes,
	};

	call->token_number = client->token.number;
	if (token)
		headers[count++] = token;
	if (call->verb->content)
		headers[count++] = call->verb->content;
	call->attempts++;
	client->sent++;
	return http_send(client->http, &request, &events, call, &call->exchange);
}

static void call_due(void *context)
{
	struct kube_call *call = context;
	struct kube_attempt attempt = {.outcome = KUBE_E_CANCELLED};

	if (call->client->is_cancelled) {
		err_set(&attempt.words, 0, "cancelled");
	} else {
		if (!call_send(call))
			return;
		attempt.outcome = KUBE_E_UNREACHABLE;
		err_set(&attempt.words, 0, "no memory");
	}
	call_end(call, &attempt);
}

static int call_begin(struct kube_client *client, const struct verb *verb, const char *path,
	const json_t *body, struct kube_call **ret_call)
{
	struct kube_call *call = calloc(1, sizeof(*call));
	uint64_t now = clock_now_ns();

	if (!call)
		return -ENOMEM;
	call->client = client;
	call->verb = verb;
	call->timer = (struct loop_timer){.due = call_due, .context = call};
	call->next = client->first;
	if (client->first)
		client->first->previous = call;
	client->first = call;
	if (asprintf(&call->url, "%s%s", client->server, path) < 0)
		call->url = NULL;
	if (body)
		call->body = json_dumps(body, JSON_COMPACT);
	if (!call->url || (body && !call->body)) {
		call_free(call);
		return -ENOMEM;
	}
	call->deadline_ns = verb->is_stream ? UINT64_MAX : now + client->settings.deadline_ns;
	loop_timer_set(client->loop, &call->timer,
		client->is_cancelled ? now : rate_take(&client->rate, now));
	*ret_call = call;
	return 0;
}

static int call_begin_to(struct kube_client *client, const struct verb *verb, const char *path,
	const json_t *body, kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	int result = call_begin(client, verb, path, body, ret_call);

	if (result)
		return result;
	(*ret_call)->done = done;
	(*ret_call)->context = context;
	return 0;
}

int kube_get(struct kube_client *client, const char *path, kube_done_fn *done, void *context,
	struct kube_call **ret_call)
{
	return call_begin_to(client, &get, path, NULL, done, context, ret_call);
}

int kube_create(struct kube_client *client, const char *path, const json_t *object,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	return call_begin_to(client, &create, path, object, done, context, ret_call);
}

int kube_patch(struct kube_client *client, const char *path, const json_t *patch,
	const char *resource_version, kube_done_fn *done, void *context,
	struct kube_call **ret_call)
{
	json_t *metadata, *version, *whole = json_deep_copy(patch);
	int result = -ENOMEM;

	if (whole && resource_version) {
		metadata = json_object_get(whole, "metadata");
		if (!metadata) {
			metadata = json_object();
			json_object_set_new(whole, "metadata", metadata);
		}
		version = json_string(resource_version);
		if (json_object_set_new(metadata, "resourceVersion", version)) {
			json_decref(whole);
			return -ENOMEM;
		}
	}
	if (whole)
		result = call_begin_to(client, &patch_verb, path, whole, done, context, ret_call);
	json_decref(whole);
	return result;
}

int kube_patch_if(struct kube_client *client, const char *path, const json_t *operations,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	return call_begin_to(client, &patch_if, path, operations, done, context, ret_call);
}

int kube_stream(struct kube_client *client, const char *path, unsigned silence_s,
	kube_take_fn *take, kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	int result = call_begin_to(client, &stream, path, NULL, done, context, ret_call);

	if (result)
		return result;
	(*ret_call)->take = take;
	(*ret_call)->silence_s = silence_s;
	return 0;
}

/* Those under way are cut; then each ends from its timer, in the order in which they are found. */
static void cancel_is_ready(void *context, uint32_t events)
{
	struct kube_client *client = context;
	uint64_t now = clock_now_ns();

	client->is_cancelled = true;
	loop_watch_remove(client->loop, &client->cancel_watch);
	for (struct kube_call *call = client->first; call; call = call->next) {
		if (call->exchange)
			http_cancel(call->exchange);
		call->exchange = NULL;
		loop_timer_set(client->loop, &call->timer, now);
	}
}

int kube_client_new(struct loop *loop, const struct kube_access *access,
	const struct kube_settings *settings, struct kube_client **ret_client, struct err *err)
{
	struct http_trust trust = kube_access_trust(access);
	struct kube_client *client = calloc(1, sizeof(*client));
	int result = 0;

	if (!client)
		return err_set(err, ENOMEM, "no memory");
	client->loop = loop;
	client->settings = *settings;
	client->rate = (struct rate){.per_s = settings->calls_per_s, .burst = settings->burst};
	client->cancel_watch = (struct loop_watch){.ready = cancel_is_ready, .context = client};
	client->server = strdup(access->server);
	if (!client->server || kube_token_init(&client->token, access->token_file, access->token))
		result = err_set(err, ENOMEM, "no memory");
	if (!result)
		result = http_client_new(loop, &trust, &client->http, err);
	if (!result && settings->cancel_fd >= 0) {
		result = loop_watch_add(loop, &client->cancel_watch, settings->cancel_fd, EPOLLIN);
		if (result)
			err_set(err, -result, "the descriptor for cancelling: %s",
				strerror(-result));
	}
	if (result) {
		kube_client_free(client);
		return result;
	}
	*ret_client = client;
	return 0;
}

void kube_client_free(struct kube_client *client)
{
	if (!client)
		return;
	while (client->first)
		call_free(client->first);
	loop_watch_remove(client->loop, &client->cancel_watch);
	http_client_free(client->http);
	kube_token_deinit(&client->token);
	free(client->server);
	free(client);
}

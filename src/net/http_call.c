/* SPDX-License-Identifier: Apache-2.0 */
/* A request at the server. */
#include "net/http_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hold(struct http_calls *all, struct http_call *call)
{
	call->all = all;
	call->held_link = &all->first;
	call->next_held = all->first;
	if (call->next_held)
		call->next_held->held_link = &call->next_held;
	all->first = call;
}

static void let_go(struct http_call *call)
{
	if (!call->held_link)
		return;
	*call->held_link = call->next_held;
	if (call->next_held)
		call->next_held->held_link = call->held_link;
}

void http_call_free(struct http_call *call)
{
	let_go(call);
	if (call->response)
		MHD_destroy_response(call->response);
	free(call->method);
	free(call->path);
	free(call->body);
	free(call);
}

struct http_call *http_call_new(struct http_calls *all, struct MHD_Connection *connection,
	const char *client, const char *method, const char *path)
{
	struct http_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->connection = connection;
	call->method = strdup(method);
	call->path = strdup(path);
	call->body = calloc(1, 1);
	if (call->method && call->path && call->body) {
		snprintf(call->client, sizeof(call->client), "%s", client);
		hold(all, call);
		return call;
	}
	http_call_free(call);
	return NULL;
}

/* Many connections of one client hold no more together than it may. */
static bool is_too_much(const struct http_call *call, size_t count)
{
	size_t most = call->all->client_bodies_most_bytes, sum = count;

	for (const struct http_call *other = call->all->first; other && most;
		other = other->next_held)
		if (!strcmp(other->client, call->client))
			sum += other->body_bytes;
	return most && sum > most;
}

enum MHD_Result http_call_read(struct http_call *call, const char *bytes, size_t count)
{
	char *grown;

	if (call->state == CALL_TOO_LONG || count > call->all->body_most_bytes - call->body_bytes ||
		is_too_much(call, count)) {
		call->state = CALL_TOO_LONG;
		free(call->body);
		call->body = NULL;
		call->body_bytes = 0;
		return MHD_YES;
	}
	grown = realloc(call->body, call->body_bytes + count + 1);
	if (!grown)
		return MHD_NO;
	memcpy(grown + call->body_bytes, bytes, count);
	call->body = grown;
	call->body_bytes += count;
	grown[call->body_bytes] = '\0';
	return MHD_YES;
}

enum MHD_Result http_call_send(struct http_call *call)
{
	struct MHD_Response *response = call->response;
	enum MHD_Result result = MHD_NO;

	call->response = NULL;
	if (response) {
		result = MHD_queue_response(call->connection, call->status, response);
		MHD_destroy_response(response);
	}
	return result;
}

static bool add_headers(
	struct MHD_Response *response, const struct http_header *headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!MHD_add_response_header(response, headers[i].name, headers[i].value))
			return false;
	return true;
}

void http_call_prepare(struct http_call *call, unsigned status, const struct http_header *headers,
	size_t header_count, const char *body, size_t body_bytes)
{
	call->state = CALL_ANSWERED;
	call->status = status;
	call->response =
		MHD_create_response_from_buffer(body_bytes, (void *)body, MHD_RESPMEM_MUST_COPY);
	if (call->response && !add_headers(call->response, headers, header_count)) {
		MHD_destroy_response(call->response);
		call->response = NULL;
	}
}

const char *http_call_method(const struct http_call *call)
{
	return call->method;
}

const char *http_call_path(const struct http_call *call)
{
	return call->path;
}

const char *http_call_header(const struct http_call *call, const char *name)
{
	return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

const char *http_call_body(const struct http_call *call, size_t *ret_bytes)
{
	*ret_bytes = call->body_bytes;
	return call->body;
}

const char *http_call_client(const struct http_call *call)
{
	return call->client;
}

void http_call_set_data(struct http_call *call, void *data)
{
	call->data = data;
}

void *http_call_data(const struct http_call *call)
{
	return call->data;
}

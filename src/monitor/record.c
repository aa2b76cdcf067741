/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's own record of what each container has been given. */
#include "monitor/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/http.h"

#define LOG_TOPIC    LOG_KUBELET
#define URL	     "http://localhost/v1.PodResourcesLister/List"
#define READ_NS	     (2000ull * 1000000)
#define MOST_BYTES   (4u << 20)
#define PREFIX_BYTES 5 /* of a message: whether it is compressed, and its length */
#define STATUS_OK    200

struct record {
	const struct record_settings *settings;
	struct http_client *client;
	struct http_exchange *exchange; /* NULL: nothing is asked */
	uint8_t *bytes;
	size_t count;
	bool is_whole; /* all bytes that came were kept */
	V1__ListPodResourcesResponse *answer;
	bool is_missed; /* said once */
};

static void forget_answer(struct record *record)
{
	if (record->answer)
		v1__list_pod_resources_response__free_unpacked(record->answer, NULL);
	record->answer = NULL;
}

static void forget_bytes(struct record *record)
{
	free(record->bytes);
	record->bytes = NULL;
	record->count = 0;
	record->is_whole = true;
}

static void keep(void *context, int status, const char *bytes, size_t count)
{
	struct record *record = context;
	uint8_t *grown = record->count + count <= MOST_BYTES
				 ? realloc(record->bytes, record->count + count)
				 : NULL;

	record->is_whole = record->is_whole && grown;
	if (!grown)
		return;
	memcpy(grown + record->count, bytes, count);
	record->bytes = grown;
	record->count += count;
}

/* One message that is not compressed. A server that refuses sends none. */
static V1__ListPodResourcesResponse *unpack(const struct record *record)
{
	const uint8_t *b = record->bytes;
	size_t length;

	if (!record->is_whole || record->count < PREFIX_BYTES || b[0])
		return NULL;
	length = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
	return length == record->count - PREFIX_BYTES
		       ? v1__list_pod_resources_response__unpack(NULL, length, b + PREFIX_BYTES)
		       : NULL;
}

static void done(void *context, const struct http_result *result)
{
	struct record *record = context;

	record->exchange = NULL;
	forget_answer(record);
	if (!result->outcome && result->status == STATUS_OK)
		record->answer = unpack(record);
	forget_bytes(record);
	if (!record->answer && !record->is_missed)
		log_warn("the kubelet does not tell its record of slices",
			STR("why", result->outcome ? result->words : "it refuses"));
	record->is_missed = !record->answer;
	record->settings->came(record->settings->context, record->answer);
}

void record_ask(struct record *record)
{
	static const struct http_events events = {keep, done};
	static const char *const headers[] = {
		"Content-Type: application/grpc", "TE: trailers", "Accept:", NULL};
	const struct http_request request = {.method = "POST",
		.url = URL,
		.socket_path = record->settings->socket_path,
		.headers = headers,
		.body = "\0\0\0\0",
		.body_bytes = PREFIX_BYTES,
		.deadline_ns = clock_now_ns() + READ_NS,
		.most_bytes = MOST_BYTES};

	if (record->exchange)
		return;
	forget_bytes(record);
	if (!access(record->settings->socket_path, F_OK) &&
		!http_send(record->client, &request, &events, record, &record->exchange))
		return;
	forget_answer(record);
	record->settings->came(record->settings->context, NULL);
}

const V1__ListPodResourcesResponse *record_answer(const struct record *record)
{
	return record ? record->answer : NULL;
}

int record_new(struct loop *loop, const struct record_settings *settings,
	struct record **ret_record, struct err *err)
{
	struct record *record = calloc(1, sizeof(*record));
	int r;

	if (!record)
		return err_set(err, ENOMEM, "no memory");
	record->settings = settings;
	r = http_client_new(
		loop, &(struct http_trust){.is_unverified = true}, &record->client, err);
	if (r)
		record_free(record);
	else
		*ret_record = record;
	return r;
}

void record_free(struct record *record)
{
	if (!record)
		return;
	if (record->client)
		http_client_free(record->client);
	forget_bytes(record);
	forget_answer(record);
	free(record);
}

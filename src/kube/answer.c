/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to one attempt, and its meaning. */
#include "kube/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/prune.h"

void kube_answer_clear(struct kube_answer *answer)
{
	json_decref(answer->json);
	free(answer->bytes);
	*answer = (struct kube_answer){0};
}

int kube_answer_add(struct kube_answer *answer, const char *bytes, size_t count, size_t most_bytes)
{
	size_t wanted = answer->count + count, room = answer->room;
	char *grown;

	if (wanted > most_bytes)
		return -EMSGSIZE;
	while (room < wanted)
		room = room ? room * 2 : 4096;
	if (room != answer->room) {
		grown = realloc(answer->bytes, room);
		if (!grown)
			return -ENOMEM;
		answer->bytes = grown;
		answer->room = room;
	}
	memcpy(answer->bytes + answer->count, bytes, count);
	answer->count = wanted;
	return 0;
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static enum kube_outcome outcome_of(int status, const json_t *body)
{
	switch (status) {
	case 401:
	case 403:
		return KUBE_E_DENIED;
	case 404:
		return KUBE_E_NOT_FOUND;
	case 409:
		return strcmp(text_at(body, "reason"), "AlreadyExists") ? KUBE_E_CONFLICT
									: KUBE_E_EXISTS;
	case 410:
		return KUBE_E_GONE;
	case 429:
		return KUBE_E_UNREACHABLE;
	default:
		return status >= 400 && status < 500 ? KUBE_E_INVALID : KUBE_E_UNREACHABLE;
	}
}

/* Whether the server says by this status that it has done nothing. */
static bool was_turned_away(const struct http_result *result)
{
	return result->status == 429 || (result->status == 503 && result->retry_after_s);
}

/* No answer of use came. */
static void classify_failure(
	const struct verb *verb, bool nothing_was_done, struct kube_attempt *ret_attempt)
{
	ret_attempt->outcome = nothing_was_done || verb->is_repeatable || verb->is_stream
				       ? KUBE_E_UNREACHABLE
				       : KUBE_E_UNCERTAIN;
	ret_attempt->may_repeat = !verb->is_stream && ret_attempt->outcome == KUBE_E_UNREACHABLE;
}

static void classify_status(const struct verb *verb, const struct http_result *result,
	const struct kube_answer *answer, struct kube_attempt *ret_attempt)
{
	const char *said = text_at(answer->json, "message");

	ret_attempt->outcome = outcome_of(result->status, answer->json);
	if (ret_attempt->outcome == KUBE_E_UNREACHABLE)
		classify_failure(verb, was_turned_away(result), ret_attempt);
	err_set(&ret_attempt->words, 0, "the API server answered %d%s%s", result->status,
		*said ? ": " : "", said);
}

/* The text goes when its objects are there: both would be twice the memory. */
static void parse(struct kube_answer *answer)
{
	if (answer->count)
		answer->json = prune_load(answer->bytes, answer->count, answer->unused);
	free(answer->bytes);
	answer->bytes = NULL;
	answer->count = answer->room = 0;
}

/* A server may say so before it has read the request, and end the stream with it. */
static bool is_stranger(const struct http_result *result)
{
	return result->outcome == HTTP_E_CUT && result->status == 401;
}

void kube_answer_classify(const struct verb *verb, const struct http_result *result,
	struct kube_answer *answer, struct kube_attempt *ret_attempt)
{
	bool is_success = result->status >= 200 && result->status < 300;

	*ret_attempt = (struct kube_attempt){0};
	if (result->outcome == HTTP_E_TOO_LARGE) {
		ret_attempt->outcome = KUBE_E_NOT_UNDERSTOOD;
		err_set(&ret_attempt->words, 0, "the answer is too large");
		return;
	}
	if (result->outcome && !is_stranger(result)) {
		classify_failure(verb, result->outcome == HTTP_E_NOT_SENT, ret_attempt);
		err_set(&ret_attempt->words, 0, "no answer from the API server: %s", result->words);
		return;
	}
	parse(answer);
	if (!is_success) {
		classify_status(verb, result, answer, ret_attempt);
	} else if (!verb->is_stream && !answer->json) {
		ret_attempt->outcome = KUBE_E_NOT_UNDERSTOOD;
		err_set(&ret_attempt->words, 0, "the API server's answer is not JSON");
	}
}

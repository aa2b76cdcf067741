/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the nodes a pod is put on. */
#include "scheduler/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/reservation.h"

#define REASON_BYTES 64
#define AHEAD	     4	 /* nodes whose devices are fetched before they are looked at */
#define AHEAD_BYTES  256 /* of each: mostly the first would do */

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

void filter_explain(const struct filter_reason *reason, char ret_words[FILTER_WORDS_BYTES])
{
	char lines[FIT_REASONS][REASON_BYTES];
	size_t count = 0, used = 0;

	ret_words[0] = '\0';
	if (reason->is_unregistered) {
		strcpy(ret_words, "node unregistered");
		return;
	}
	if (reason->devices[FIT_LACKS_DEVICES]) {
		strcpy(ret_words, fit_reason_word(FIT_LACKS_DEVICES));
		return;
	}
	for (unsigned i = 0; i < FIT_REASONS; i++)
		if (reason->devices[i])
			snprintf(lines[count++], REASON_BYTES, "%u/%u %s", reason->devices[i],
				reason->device_count, fit_reason_word((enum fit_reason)i));
	qsort(lines, count, REASON_BYTES, compare);
	for (size_t i = 0; i < count; i++)
		used += (size_t)sprintf(ret_words + used, "%s%s", i ? ", " : "", lines[i]);
}

/* What reasons of the answer point to, the latest first. */
struct kept_reason {
	struct filter_reason reason;
	struct kept_reason *next;
};

/* As text it is written when it is asked for. */
static struct filter_reason reason_of(const struct fit_node *node, const struct fit_result *result)
{
	struct filter_reason reason = {.is_unregistered = !node};

	for (unsigned i = 0; i < FIT_REASONS && node; i++)
		if (!result->reasons[FIT_LACKS_DEVICES] || i == FIT_LACKS_DEVICES)
			reason.devices[i] = (uint16_t)result->reasons[i];
	reason.device_count = node ? (uint16_t)node->device_count : 0;
	return reason;
}

/* Of thousands of nodes most would not do for the same reason as the one before. */
static const struct filter_reason *keep_reason(
	struct filter_answer *answer, const struct filter_reason *reason)
{
	struct kept_reason *kept = answer->kept;

	if (kept && !memcmp(&kept->reason, reason, sizeof(*reason)))
		return &kept->reason;
	kept = malloc(sizeof(*kept));
	if (!kept)
		return NULL;
	*kept = (struct kept_reason){*reason, answer->kept};
	answer->kept = kept;
	return &kept->reason;
}

static bool is_better(const struct filter_request *request, const struct filter_answer *answer,
	size_t one, size_t best)
{
	double difference = answer->scores[one] - answer->scores[best];

	if (difference != 0)
		return (difference > 0) != request->demand->is_spread;
	return strcmp(request->names[one], request->names[best]) < 0;
}

/* One request, while its nodes are looked at. */
struct search {
	const struct filter_request *request;
	struct fit_pod pod;
	struct fit_result result; /* of the node at hand */
	const struct fit_node **nodes;
	struct filter_answer *answer;
	bool was_enough; /* a glance at the node before */
};

/* Where many nodes are full a glance is mostly in vain. */
static bool does_fit(struct search *search, const struct fit_node *node)
{
	if (search->was_enough && fit_surely(node, &search->pod, &search->result))
		return true;
	search->was_enough = fit(node, &search->pod, &search->result);
	return search->was_enough;
}

static bool try_node(struct search *search, size_t at)
{
	const struct fit_node *node = search->nodes[at];
	struct filter_answer *answer = search->answer;

	if (!node || !does_fit(search, node)) {
		struct filter_reason reason = reason_of(node, &search->result);

		return (answer->reasons[at] = keep_reason(answer, &reason));
	}
	answer->scores[at] = node->fullness;
	answer->fit_count++;
	if (answer->chosen == FILTER_NONE || is_better(search->request, answer, at, answer->chosen))
		answer->chosen = at;
	return true;
}

static void prefetch(const struct fit_node *node)
{
	const char *at = (const char *)node->devices;

	for (size_t i = 0; i < AHEAD_BYTES; i += 64)
		__builtin_prefetch(at + i);
}

/* All are looked up first, so that their devices are on the way from memory while others are judged. */
static int try_all(struct search *search, struct books *books)
{
	size_t count = search->request->name_count;

	for (size_t i = 0; i < count; i++)
		search->nodes[i] = books_node(books, search->request->names[i]);
	for (size_t i = 0; i < count; i++) {
		if (i + AHEAD < count && search->nodes[i + AHEAD])
			prefetch(search->nodes[i + AHEAD]);
		if (!try_node(search, i))
			return -ENOMEM;
	}
	return 0;
}

/* Its devices are chosen again, because only of the best node they are needed. */
static int promise(struct search *search)
{
	struct filter_answer *answer = search->answer;
	const struct fit_node *node;

	if (answer->chosen == FILTER_NONE)
		return 0;
	node = search->nodes[answer->chosen];
	if (!fit(node, &search->pod, &search->result))
		return -EPROTO;
	return reservation_write(
		node, &search->pod, &search->result, &answer->devices, &answer->instances);
}

int filter(
	struct books *books, const struct filter_request *request, struct filter_answer *ret_answer)
{
	_cleanup_free_ struct search *search = malloc(sizeof(*search));
	_cleanup_free_ const struct fit_node **nodes =
		malloc((request->name_count + 1) * sizeof(const struct fit_node *));
	int result = -ENOMEM;

	*ret_answer = (struct filter_answer){.chosen = FILTER_NONE,
		.name_count = request->name_count,
		.reasons = calloc(request->name_count + 1, sizeof(*ret_answer->reasons)),
		.scores = calloc(request->name_count + 1, sizeof(double))};
	if (search && nodes && ret_answer->reasons && ret_answer->scores) {
		search->request = request;
		search->pod = request->demand->pod;
		search->pod.room = books_room(books, request->demand->namespace);
		search->nodes = nodes;
		search->answer = ret_answer;
		search->was_enough = true;
		result = try_all(search, books);
	}
	if (!result)
		result = promise(search);
	if (result)
		filter_deinit(ret_answer);
	return result;
}

void filter_deinit(struct filter_answer *answer)
{
	struct kept_reason *kept;

	while ((kept = answer->kept)) {
		answer->kept = kept->next;
		free(kept);
	}
	free(answer->reasons);
	free(answer->scores);
	free(answer->devices);
	free(answer->instances);
	*answer = (struct filter_answer){0};
}

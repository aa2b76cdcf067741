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
#define AHEAD	     2 /* nodes whose devices are fetched before they are looked at */

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* "1/4 CardNotHealth, 3/4 CardInsufficientMemory"; NULL: no memory. */
static char *explain(const struct fit_result *result, size_t device_count)
{
	char reasons[FIT_REASONS][REASON_BYTES], *text;
	size_t count = 0, used = 0;

	if (result->reasons[FIT_LACKS_DEVICES])
		return strdup(fit_reason_word(FIT_LACKS_DEVICES));
	for (unsigned i = 0; i < FIT_REASONS; i++)
		if (result->reasons[i])
			snprintf(reasons[count++], REASON_BYTES, "%u/%zu %s", result->reasons[i],
				device_count, fit_reason_word((enum fit_reason)i));
	qsort(reasons, count, REASON_BYTES, compare);
	text = malloc(count * (REASON_BYTES + 2) + 1);
	if (!text)
		return NULL;
	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		used += (size_t)sprintf(text + used, "%s%s", i ? ", " : "", reasons[i]);
	return text;
}

/* The best node so far, with what was chosen of it. */
struct best {
	size_t at;
	const struct fit_node *node;
	struct fit_result *result;
};

static bool is_better(const struct filter_request *request, const struct filter_answer *answer,
	size_t one, size_t best)
{
	double difference = answer->scores[one] - answer->scores[best];

	if (difference != 0)
		return (difference > 0) != request->demand->is_spread;
	return strcmp(request->names[one], request->names[best]) < 0;
}

static bool try_node(const struct fit_node *node, const struct filter_request *request,
	const struct fit_pod *pod, size_t at, struct filter_answer *answer, struct best *best,
	struct fit_result **scratch)
{
	struct fit_result *result = *scratch;

	if (!node)
		return (answer->reasons[at] = strdup("node unregistered"));
	if (!fit(node, pod, result))
		return (answer->reasons[at] = explain(result, node->device_count));
	answer->scores[at] = fit_node_score(node);
	answer->fit_count++;
	if (best->at == FILTER_NONE || is_better(request, answer, at, best->at)) {
		*scratch = best->result;
		*best = (struct best){at, node, result};
	}
	return true;
}

static void prefetch(const struct fit_node *node)
{
	const char *at = (const char *)node->devices;

	for (size_t i = 0; i < node->device_count * sizeof(*node->devices); i += 64)
		__builtin_prefetch(at + i);
}

int filter(
	struct books *books, const struct filter_request *request, struct filter_answer *ret_answer)
{
	_cleanup_free_ struct fit_result *results = malloc(2 * sizeof(*results));
	_cleanup_free_ const struct fit_node **nodes =
		malloc((request->name_count + 1) * sizeof(const struct fit_node *));
	struct fit_result *scratch = results;
	struct best best = {.at = FILTER_NONE, .result = results + 1};
	struct fit_pod pod = request->demand->pod;
	int result = 0;

	*ret_answer = (struct filter_answer){.chosen = FILTER_NONE,
		.name_count = request->name_count,
		.reasons = calloc(request->name_count + 1, sizeof(char *)),
		.scores = calloc(request->name_count + 1, sizeof(double))};
	if (!results || !nodes || !ret_answer->reasons || !ret_answer->scores)
		result = -ENOMEM;
	pod.room = books_room(books, request->demand->namespace);
	/* all are looked up first, so that their devices are on the way from memory while others are judged */
	for (size_t i = 0; !result && i < request->name_count; i++)
		nodes[i] = books_node(books, request->names[i]);
	for (size_t i = 0; !result && i < request->name_count; i++) {
		if (i + AHEAD < request->name_count && nodes[i + AHEAD])
			prefetch(nodes[i + AHEAD]);
		if (!try_node(nodes[i], request, &pod, i, ret_answer, &best, &scratch))
			result = -ENOMEM;
	}
	if (!result && best.at != FILTER_NONE) {
		ret_answer->chosen = best.at;
		result = reservation_write(
			best.node, &pod, best.result, &ret_answer->devices, &ret_answer->instances);
	}
	if (result)
		filter_deinit(ret_answer);
	return result;
}

void filter_deinit(struct filter_answer *answer)
{
	for (size_t i = 0; answer->reasons && i < answer->name_count; i++)
		free(answer->reasons[i]);
	free(answer->reasons);
	free(answer->scores);
	free(answer->devices);
	free(answer->instances);
	*answer = (struct filter_answer){0};
}

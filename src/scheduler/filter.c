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

static bool try_node(struct books *books, const struct filter_request *request,
	const struct fit_pod *pod, size_t at, struct filter_answer *answer, struct best *best,
	struct fit_result **scratch)
{
	const struct fit_node *node = books_node(books, request->names[at]);
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

int filter(
	struct books *books, const struct filter_request *request, struct filter_answer *ret_answer)
{
	_cleanup_free_ struct fit_result *results = malloc(2 * sizeof(*results));
	struct fit_result *scratch = results;
	struct best best = {.at = FILTER_NONE, .result = results + 1};
	struct fit_pod pod = request->demand->pod;
	int result = 0;

	*ret_answer = (struct filter_answer){.chosen = FILTER_NONE,
		.name_count = request->name_count,
		.reasons = calloc(request->name_count + 1, sizeof(char *)),
		.scores = calloc(request->name_count + 1, sizeof(double))};
	if (!results || !ret_answer->reasons || !ret_answer->scores)
		result = -ENOMEM;
	pod.room = books_room(books, request->demand->namespace);
	for (size_t i = 0; !result && i < request->name_count; i++)
		if (!try_node(books, request, &pod, i, ret_answer, &best, &scratch))
			result = -ENOMEM;
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

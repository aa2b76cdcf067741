/* SPDX-License-Identifier: Apache-2.0 */
/* The node's annotation by which the scheduler knows how near its devices are to each other. */
#include "plugin/devices/score.h"

#include <errno.h>
#include <jansson.h>

/* NULL: no memory. */
static json_t *scores_of(
	const struct inventory *devices, const struct topology *topology, unsigned from)
{
	json_t *scores = json_object();

	for (unsigned to = 0; to < devices->count; to++)
		if (to != from && json_object_set_new(scores, devices->device[to].uuid,
					  json_integer(topology_score(topology, from, to)))) {
			json_decref(scores);
			return NULL;
		}
	return scores;
}

int score_format(const struct inventory *devices, const struct topology *topology, char **ret_text)
{
	json_t *list = json_array();
	int result = list ? 0 : -1;

	for (unsigned i = 0; i < devices->count && !result; i++)
		result = json_array_append_new(
			list, json_pack("{s:s,s:o}", "uuid", devices->device[i].uuid, "score",
				      scores_of(devices, topology, i)));
	*ret_text = result ? NULL : json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return *ret_text ? 0 : -ENOMEM;
}

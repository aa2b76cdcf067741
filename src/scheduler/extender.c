/* SPDX-License-Identifier: Apache-2.0 */
/* What /filter and /bind have in common. */
#include "scheduler/extender.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* jansson's words name the place; texts of others are not repeated. */
json_t *extender_read(struct http_call *call, struct err *err)
{
	json_error_t where;
	size_t bytes;
	const char *body = http_call_body(call, &bytes);
	json_t *object = json_loadb(body, bytes, 0, &where);

	if (!object)
		err_set(err, 0, "the body is no JSON: line %d, column %d", where.line,
			where.column);
	else if (!json_is_object(object))
		err_set(err, 0, "the body is no JSON object");
	if (object && json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

void extender_answer(struct http_call *call, json_t *answer)
{
	static const char failed[] = "no memory\n";
	_cleanup_free_ char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	json_decref(answer);
	if (text)
		http_answer(call, 200, "application/json", text, strlen(text));
	else
		http_answer(call, 500, "text/plain", failed, sizeof(failed) - 1);
}

const char *extender_trouble(const struct extender *extender)
{
	if (!extender->leads)
		return "this replica does not lead";
	if (!cluster_is_known(extender->cluster))
		return "the cluster is not known yet";
	return NULL;
}

/* The data of a call that is answered later is where its owner keeps it. */
void extender_gone(struct http_call *call)
{
	struct http_call **place = http_call_data(call);

	if (place)
		*place = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a cluster, read once from its API server. */
#include "plan/live.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/access.h"
#include "kube/client.h"

#define PAGE_OBJECTS 500
#define SECOND_NS    1000000000ull

struct live {
	struct loop *loop;
	struct kube_client *client;
	char *server;
	/* of the call at hand */
	bool is_done;
	enum kube_outcome outcome;
	json_t *body;
	char words[200];
};

int live_open(const char *kubeconfig, const char *context, struct live **ret_live, struct err *err)
{
	struct kube_settings settings = kube_settings_default;
	struct kube_access access = KUBE_ACCESS_NULL;
	struct live *live;
	int result = kube_access_find(kubeconfig, context, &access, err);

	if (result)
		return result;
	live = calloc(1, sizeof(*live));
	settings.deadline_ns = 15 * SECOND_NS;
	settings.first_pause_ns = SECOND_NS / 10;
	settings.most_pause_ns = 2 * SECOND_NS;
	settings.answer_most_bytes = 256u << 20;
	if (!live || loop_new(&live->loop) || !(live->server = strdup(access.server)))
		result = err_set(err, ENOMEM, "no memory");
	else
		result = kube_client_new(live->loop, &access, &settings, &live->client, err);
	kube_access_deinit(&access);
	if (result)
		live_close(live);
	else
		*ret_live = live;
	return result;
}

void live_close(struct live *live)
{
	if (!live)
		return;
	if (live->client)
		kube_client_free(live->client);
	if (live->loop)
		loop_free(live->loop);
	free(live->server);
	free(live);
}

const char *live_server(const struct live *live)
{
	return live->server;
}

static void came(void *context, const struct kube_result *result)
{
	struct live *live = context;

	live->is_done = true;
	live->outcome = result->outcome;
	live->body = json_incref((json_t *)result->body);
	snprintf(live->words, sizeof(live->words), "%s", result->words ? result->words : "");
}

static int get(struct live *live, const char *path, json_t **ret_object, struct err *err)
{
	struct kube_call *call;

	live->is_done = false;
	if (kube_get(live->client, path, came, live, &call))
		return err_set(err, ENOMEM, "no memory");
	while (!live->is_done)
		if (loop_run(live->loop, UINT64_MAX) < 0)
			return err_set(err, EIO, "the loop ended");
	if (live->outcome)
		return err_set(err, EIO, "%.150s%.80s: %.200s", live->server, path, live->words);
	*ret_object = live->body;
	return 0;
}

static int keep(struct reader_list *list, json_t *page, const char *kind, struct err *err)
{
	json_t *items = json_object_get(page, "items"), *item;
	size_t i;

	json_array_foreach(items, i, item)
	{
		int result;

		/* elements of a list do not say what they are */
		if (!json_is_object(item) || json_object_set_new(item, "kind", json_string(kind)))
			continue;
		/* half of what a server says, and nobody here reads it */
		json_object_del(json_object_get(item, "metadata"), "managedFields");
		result = reader_append(
			list, &(struct reader_object){.object = item, .file = "the cluster"});
		if (result)
			return err_set(err, ENOMEM, "no memory");
	}
	return 0;
}

/* The tokens of a server are base64. */
static char *page_path(const char *path, const char *query, const char *token)
{
	char *whole;

	if (asprintf(&whole, "%s?limit=%d%s%s%s%s", path, PAGE_OBJECTS, query ? "&" : "",
		    query ? query : "", *token ? "&continue=" : "", token) < 0)
		return NULL;
	return whole;
}

int live_list(struct live *live, const char *path, const char *query, const char *kind,
	struct reader_list *list, struct err *err)
{
	char token[4096] = "";

	do {
		_cleanup_free_ char *whole = page_path(path, query, token);
		const char *next;
		json_t *page = NULL;
		int result =
			whole ? get(live, whole, &page, err) : err_set(err, ENOMEM, "no memory");

		if (result)
			return result;
		result = keep(list, page, kind, err);
		next = json_string_value(
			json_object_get(json_object_get(page, "metadata"), "continue"));
		if (!result && next && strlen(next) >= sizeof(token))
			result = err_set(err, EINVAL, "%.150s: a token is too long", live->server);
		snprintf(token, sizeof(token), "%s", next && !result ? next : "");
		json_decref(page);
		if (result)
			return result;
	} while (*token);
	return 0;
}

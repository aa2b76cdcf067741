/* SPDX-License-Identifier: Apache-2.0 */
/* The webhook's certificate, which the replicas make themselves and share by a Secret. */
#include "scheduler/own_certificate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/base64.h"
#include "scheduler/authority.h"

#define LOG_TOPIC      LOG_NET
#define SECOND_NS      1000000000ull
#define AGAIN_NS       (2 * SECOND_NS)	/* after what went wrong */
#define LOOK_NS	       (60 * SECOND_NS) /* at what others may have done */
#define CONFIGURATIONS "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

struct own_certificate {
	struct kube_client *client;
	struct own_certificate_request request;
	own_certificate_fn *take;
	void *context;
	struct loop_timer timer;
	struct kube_call *call;
	struct authority authority; /* as the Secret has it, or is to have it */
	char *served;		    /* the certificate that was told last */
	char *path, *collection, *name, *configuration;
	bool is_in_trouble; /* which was said */
};

static void look_again(struct own_certificate *own, uint64_t pause_ns)
{
	loop_timer_set(kube_client_loop(own->client), &own->timer, clock_now_ns() + pause_ns);
}

static void fail(struct own_certificate *own, const char *what, const char *why)
{
	if (!own->is_in_trouble)
		log_warn("the webhook's certificate is not settled; it is tried again",
			STR("at", what), STR("why", why));
	own->is_in_trouble = true;
	look_again(own, AGAIN_NS);
}

/* It is served before the API server is told of it only where it cannot be told. */
static void serve(struct own_certificate *own)
{
	const char *certificate = own->authority.certificate;

	if (own->served && !strcmp(own->served, certificate))
		return;
	free(own->served);
	own->served = strdup(certificate);
	own->take(own->context, certificate, own->authority.key);
}

static void finish(struct own_certificate *own)
{
	uint64_t soon_ns = own->request.life_ns / 10;

	serve(own);
	own->is_in_trouble = false;
	look_again(own, soon_ns < LOOK_NS ? soon_ns + 1 : LOOK_NS);
}

static void was_told(void *context, const struct kube_result *result)
{
	struct own_certificate *own = context;

	own->call = NULL;
	if (!result->outcome) {
		finish(own);
		return;
	}
	serve(own);
	/* a test failed: another replica was quicker */
	fail(own, own->configuration, result->words);
}

/* What each webhook lacks; *ret_count is how many do. NULL: no memory. */
static json_t *make_operations(const json_t *body, const char *bundle, size_t *ret_count)
{
	const json_t *metadata = json_object_get(body, "metadata"), *webhook;
	json_t *operations = json_pack("[{s:s, s:s, s:O}]", "op", "test", "path",
		"/metadata/resourceVersion", "value", json_object_get(metadata, "resourceVersion"));
	size_t i;

	*ret_count = 0;
	json_array_foreach(json_object_get(body, "webhooks"), i, webhook)
	{
		const char *has = json_string_value(
			json_object_get(json_object_get(webhook, "clientConfig"), "caBundle"));
		char path[64];

		if (has && !strcmp(has, bundle))
			continue;
		snprintf(path, sizeof(path), "/webhooks/%zu/clientConfig/caBundle", i);
		if (json_array_append_new(operations, json_pack("{s:s, s:s, s:s}", "op", "add",
							      "path", path, "value", bundle)))
			return NULL;
		++*ret_count;
	}
	return operations;
}

static void configuration_came(void *context, const struct kube_result *result)
{
	struct own_certificate *own = context;
	_cleanup_free_ char *bundle = NULL;
	json_t *operations = NULL;
	size_t count = 0;

	own->call = NULL;
	if (result->outcome) {
		serve(own);
		fail(own, own->configuration, result->words);
		return;
	}
	bundle = base64_encode(own->authority.bundle, strlen(own->authority.bundle));
	if (bundle)
		operations = make_operations(result->body, bundle, &count);
	if (operations && !count)
		finish(own);
	else if (!operations || kube_patch_if(own->client, own->configuration, operations, was_told,
					own, &own->call))
		fail(own, own->configuration, "no memory");
	json_decref(operations);
}

static void is_settled(struct own_certificate *own)
{
	if (!own->configuration)
		finish(own);
	else if (kube_get(own->client, own->configuration, configuration_came, own, &own->call))
		fail(own, own->configuration, "no memory");
}

static void was_kept(void *context, const struct kube_result *result)
{
	struct own_certificate *own = context;

	own->call = NULL;
	if (!result->outcome)
		is_settled(own);
	else if (result->outcome == KUBE_E_EXISTS || result->outcome == KUBE_E_CONFLICT)
		look_again(own, 0); /* another replica was quicker */
	else
		fail(own, own->path, result->words);
}

static char *encode(const char *text)
{
	return base64_encode(text, strlen(text));
}

/* As a Secret has it. */
static json_t *make_data(const struct authority *authority)
{
	_cleanup_free_ char *bundle = encode(authority->bundle),
			    *authority_key = encode(authority->authority_key),
			    *certificate = encode(authority->certificate),
			    *key = encode(authority->key);

	if (!bundle || !authority_key || !certificate || !key)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:s}", "ca.crt", bundle, "ca.key", authority_key,
		"tls.crt", certificate, "tls.key", key);
}

/* version NULL: there is none yet. */
static void keep(struct own_certificate *own, const char *version)
{
	json_t *data = make_data(&own->authority);
	json_t *secret = version ? json_pack("{s:o}", "data", data)
				 : json_pack("{s:s, s:s, s:{s:s}, s:s, s:o}", "apiVersion", "v1",
					   "kind", "Secret", "metadata", "name", own->name, "type",
					   "kubernetes.io/tls", "data", data);
	int result = -ENOMEM;

	if (secret && version)
		result = kube_patch(
			own->client, own->path, secret, version, was_kept, own, &own->call);
	else if (secret)
		result = kube_create(
			own->client, own->collection, secret, was_kept, own, &own->call);
	json_decref(secret);
	if (result)
		fail(own, own->path, "no memory");
}

static char *decode(const json_t *data, const char *key)
{
	const char *text = json_string_value(json_object_get(data, key));
	char *bytes = NULL;

	return text && !base64_decode(text, &bytes) ? bytes : NULL;
}

static void secret_came(void *context, const struct kube_result *result)
{
	struct own_certificate *own = context;
	const json_t *data = json_object_get(result->body, "data");
	const char *version = json_string_value(
		json_object_get(json_object_get(result->body, "metadata"), "resourceVersion"));
	struct authority_wish wish = {own->request.hosts,
		(int64_t)(own->request.life_ns / SECOND_NS), (int64_t)time(NULL)};
	struct err err = ERR_NULL;
	bool has_changed;

	own->call = NULL;
	if (result->outcome && result->outcome != KUBE_E_NOT_FOUND) {
		fail(own, own->path, result->words);
		return;
	}
	authority_deinit(&own->authority);
	own->authority = (struct authority){decode(data, "ca.crt"), decode(data, "ca.key"),
		decode(data, "tls.crt"), decode(data, "tls.key")};
	if (authority_renew(&own->authority, &wish, &has_changed, &err))
		fail(own, own->path, err.text);
	else if (!has_changed)
		is_settled(own);
	else
		keep(own, version);
}

static void due(void *context)
{
	struct own_certificate *own = context;

	if (kube_get(own->client, own->path, secret_came, own, &own->call))
		fail(own, own->path, "no memory");
}

static int make_paths(struct own_certificate *own)
{
	const char *slash = strchr(own->request.secret, '/');
	int space = (int)(slash - own->request.secret);

	own->name = strdup(slash + 1);
	if (asprintf(&own->collection, "/api/v1/namespaces/%.*s/secrets", space,
		    own->request.secret) < 0)
		own->collection = NULL;
	if (!own->collection || asprintf(&own->path, "%s/%s", own->collection, slash + 1) < 0)
		own->path = NULL;
	if (*own->request.configuration &&
		asprintf(&own->configuration, CONFIGURATIONS "/%s", own->request.configuration) < 0)
		return -ENOMEM;
	return own->name && own->path ? 0 : -ENOMEM;
}

/* They become parts of paths. */
static bool is_name(const char *text, size_t length)
{
	return length && length <= 253 && *text != '.' && *text != '-' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= length;
}

static int check(const struct own_certificate_request *request, struct err *err)
{
	const char *slash = strchr(request->secret, '/');

	if (!slash || !is_name(request->secret, (size_t)(slash - request->secret)) ||
		!is_name(slash + 1, strlen(slash + 1)))
		return err_set(
			err, EINVAL, "'%.100s' is no NAMESPACE/NAME of a secret", request->secret);
	if (*request->configuration &&
		!is_name(request->configuration, strlen(request->configuration)))
		return err_set(err, EINVAL, "'%.100s' is no name of a webhook configuration",
			request->configuration);
	return 0;
}

int own_certificate_start(struct kube_client *client, const struct own_certificate_request *request,
	own_certificate_fn *take, void *context, struct own_certificate **ret_own, struct err *err)
{
	struct own_certificate *own;
	int result = check(request, err);

	if (result)
		return result;
	own = calloc(1, sizeof(*own));
	if (!own)
		return err_set(err, ENOMEM, "no memory");
	*own = (struct own_certificate){.client = client,
		.request = *request,
		.take = take,
		.context = context,
		.timer = {.due = due, .context = own}};
	if (make_paths(own)) {
		own_certificate_stop(own);
		return err_set(err, ENOMEM, "no memory");
	}
	look_again(own, 0);
	*ret_own = own;
	return 0;
}

void own_certificate_stop(struct own_certificate *own)
{
	if (!own)
		return;
	kube_cancel(own->call);
	loop_timer_clear(kube_client_loop(own->client), &own->timer);
	authority_deinit(&own->authority);
	free(own->served);
	free(own->path);
	free(own->collection);
	free(own->name);
	free(own->configuration);
	free(own);
}

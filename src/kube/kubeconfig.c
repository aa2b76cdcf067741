/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig file: its current context's cluster and user. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "kube/access.h"
#include "kube/base64.h"

struct file {
	const char *path, *context_name; /* NULL: the current one */
	yaml_document_t document;
	struct err *err;
};

static const char *text_of(const yaml_node_t *node)
{
	return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value
						      : NULL;
}

/* The value of a key in a mapping; NULL where there is none. */
static yaml_node_t *value_of(struct file *file, const yaml_node_t *mapping, const char *key)
{
	if (!mapping || mapping->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
		pair < mapping->data.mapping.pairs.top; pair++) {
		const char *name = text_of(yaml_document_get_node(&file->document, pair->key));

		if (name && !strcmp(name, key))
			return yaml_document_get_node(&file->document, pair->value);
	}
	return NULL;
}

/* The text of a key; NULL where it is absent or empty, which means the same in these files. */
static const char *text_at(struct file *file, const yaml_node_t *mapping, const char *key)
{
	const char *text = text_of(value_of(file, mapping, key));

	return text && *text ? text : NULL;
}

/* In a list of {name: ..., KIND: {...}}: what is under the kind. */
static int find_named(struct file *file, const char *list_name, const char *kind, const char *name,
	const yaml_node_t **ret_found)
{
	const yaml_node_t *root = yaml_document_get_root_node(&file->document);
	const yaml_node_t *list = value_of(file, root, list_name);

	if (!name)
		return err_set(file->err, EINVAL, "%s: no %s is named", file->path, kind);
	if (list && list->type == YAML_SEQUENCE_NODE)
		for (const yaml_node_item_t *item = list->data.sequence.items.start;
			item < list->data.sequence.items.top; item++) {
			const yaml_node_t *entry = yaml_document_get_node(&file->document, *item);
			const char *here = text_at(file, entry, "name");

			if (here && !strcmp(here, name)) {
				*ret_found = value_of(file, entry, kind);
				return 0;
			}
		}
	return err_set(file->err, EINVAL, "%s: %s has no '%s'", file->path, list_name, name);
}

static int copy(struct file *file, const char *text, char **ret_copy)
{
	if (!text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : err_set(file->err, ENOMEM, "no memory");
}

static int copy_path(
	struct file *file, const yaml_node_t *mapping, const char *key, char **ret_path)
{
	const char *text = text_at(file, mapping, key), *slash = strrchr(file->path, '/');

	if (!text || *text == '/' || !slash)
		return copy(file, text, ret_path);
	if (asprintf(ret_path, "%.*s/%s", (int)(slash - file->path), file->path, text) < 0) {
		*ret_path = NULL;
		return err_set(file->err, ENOMEM, "no memory");
	}
	return 0;
}

/* PEM text under KEY-data; it goes before a path under KEY. */
static int copy_pem(struct file *file, const yaml_node_t *mapping, const char *key, char **ret_text,
	char **ret_path)
{
	char data_key[64];
	const char *data;
	int result;

	snprintf(data_key, sizeof(data_key), "%s-data", key);
	data = text_at(file, mapping, data_key);
	if (!data)
		return copy_path(file, mapping, key, ret_path);
	result = base64_decode(data, ret_text);
	if (result > 0)
		return err_set(file->err, EINVAL, "%s: %s is not base64", file->path, data_key);
	return result ? err_set(file->err, -result, "no memory") : 0;
}

static int take_cluster(struct file *file, const yaml_node_t *cluster, struct kube_access *access)
{
	const char *server = text_at(file, cluster, "server");
	const char *unverified = text_at(file, cluster, "insecure-skip-tls-verify");
	size_t length;
	int result;

	if (!server)
		return err_set(file->err, EINVAL, "%s: the cluster has no server", file->path);
	if (strncmp(server, "https://", 8) && strncmp(server, "http://", 7))
		return err_set(file->err, EINVAL, "%s: server '%s' is no URL", file->path, server);
	result = copy(file, server, &access->server);
	if (result)
		return result;
	length = strlen(access->server);
	while (length && access->server[length - 1] == '/')
		access->server[--length] = 0;
	access->is_unverified = unverified && !strcmp(unverified, "true");
	return copy_pem(file, cluster, "certificate-authority", &access->authority,
		&access->authority_file);
}

static int take_user(struct file *file, const yaml_node_t *user, struct kube_access *access)
{
	static const char *const refused[] = {
		"exec", "auth-provider", "username", "password", "as"};
	int result;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (value_of(file, user, refused[i]))
			return err_set(file->err, EINVAL, "%s: a user with '%s' is not supported",
				file->path, refused[i]);
	/* a file goes before the token itself, as kubectl has it */
	result = copy_path(file, user, "tokenFile", &access->token_file);
	if (!result && !access->token_file)
		result = copy(file, text_at(file, user, "token"), &access->token);
	if (!result)
		result = copy_pem(file, user, "client-certificate", &access->certificate,
			&access->certificate_file);
	if (!result)
		result = copy_pem(file, user, "client-key", &access->key, &access->key_file);
	return result;
}

static int take_context(struct file *file, struct kube_access *access)
{
	const yaml_node_t *root = yaml_document_get_root_node(&file->document);
	const yaml_node_t *context = NULL, *cluster = NULL, *user = NULL;
	const char *name =
		file->context_name ? file->context_name : text_at(file, root, "current-context");
	int result = find_named(file, "contexts", "context", name, &context);

	if (!result)
		result = find_named(
			file, "clusters", "cluster", text_at(file, context, "cluster"), &cluster);
	if (!result)
		result = find_named(file, "users", "user", text_at(file, context, "user"), &user);
	if (!result)
		result = take_cluster(file, cluster, access);
	if (!result)
		result = take_user(file, user, access);
	return result;
}

static int parse(FILE *stream, struct file *file, struct kube_access *access)
{
	yaml_parser_t parser;
	int result;

	if (!yaml_parser_initialize(&parser))
		return err_set(file->err, ENOMEM, "no memory");
	yaml_parser_set_input_file(&parser, stream);
	if (!yaml_parser_load(&parser, &file->document)) {
		result = err_set(file->err, EINVAL, "%s, line %zu: %s", file->path,
			parser.problem_mark.line + 1, parser.problem ? parser.problem : "no YAML");
	} else {
		result = take_context(file, access);
		yaml_document_delete(&file->document);
	}
	yaml_parser_delete(&parser);
	return result;
}

int kube_access_read(const char *path, struct kube_access *ret_access, struct err *err)
{
	return kube_access_read_context(path, NULL, ret_access, err);
}

int kube_access_read_context(
	const char *path, const char *context, struct kube_access *ret_access, struct err *err)
{
	_cleanup_file_ FILE *stream = fopen(path, "re");
	struct kube_access access = KUBE_ACCESS_NULL;
	struct file file = {.path = path, .context_name = context, .err = err};
	int result;

	if (!stream)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	result = parse(stream, &file, &access);
	if (result) {
		kube_access_deinit(&access);
		return result;
	}
	*ret_access = access;
	return 0;
}

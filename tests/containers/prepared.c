/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepared ROOT LIBRARY POD: prepares container `main` of the pod below ROOT, with 4 GiB and 30 % of the first device, and
 * prints the answer that the kubelet would get as JSON. Another call makes the same anew.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/nvml_library.h"
#include "plugin/grant/grant.h"
#include "plugin/host/library.h"
#include "plugin/host/prepare.h"

struct root {
	char hook_path[200], hook[220], state[200], shares[220], turns[200], lock[200];
	struct prepare_settings settings;
};

static int fail(const struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

static char *no_environment(const char *name)
{
	return NULL;
}

static int read_config(const struct root *root, struct config **ret_config, struct err *err)
{
	static struct flags flags;
	char *argv[] = {(char *)"prepared", NULL};
	int r = flags_read(1, argv, no_environment, &flags, err);

	flags.text[FLAG_hook_path] = root->hook_path;
	return r ? r : config_read(&flags, &(struct config_files){0}, ret_config, err);
}

static void name_root(const char *path, struct root *ret_root)
{
	struct root *r = ret_root;

	snprintf(r->hook_path, sizeof(r->hook_path), "%s/usr/local", path);
	snprintf(r->hook, sizeof(r->hook), "%s/vgpu", r->hook_path);
	snprintf(r->state, sizeof(r->state), "%s/var/lib/cantaloupe", path);
	snprintf(r->shares, sizeof(r->shares), "%s/shares", r->state);
	snprintf(r->turns, sizeof(r->turns), "%s/run/cantaloupe/turns", path);
	snprintf(r->lock, sizeof(r->lock), "%s/tmp/vgpulock", path);
	r->settings = (struct prepare_settings){
		.place = {.hook = r->hook, .shares = r->shares, .turns = r->turns, .lock = r->lock},
		.state = r->state,
		.version = "1"};
}

static void print(const V1beta1__ContainerAllocateResponse *answer)
{
	json_t *env = json_array(), *mounts = json_array(), *all;

	for (size_t i = 0; i < answer->n_envs; i++)
		json_array_append_new(
			env, json_sprintf("%s=%s", answer->envs[i]->key, answer->envs[i]->value));
	for (size_t i = 0; i < answer->n_mounts; i++)
		json_array_append_new(mounts,
			json_pack("{s:s, s:s, s:[s, s]}", "hostPath", answer->mounts[i]->host_path,
				"containerPath", answer->mounts[i]->container_path, "options",
				"rbind", answer->mounts[i]->read_only ? "ro" : "rw"));
	all = json_pack("{s:o, s:o}", "env", env, "mounts", mounts);
	json_dumpf(all, stdout, JSON_INDENT(1));
	json_decref(all);
}

static void list_paths(const struct prepared *p, struct grant_paths *ret_paths)
{
	*ret_paths = (struct grant_paths){.library = p->library,
		.preload = p->preload,
		.region_folder = p->region_folder,
		.region_file = p->region_file,
		.share_folder = p->share_folder,
		.lock_folder = p->lock_folder,
		.turns_folder = p->turns_folder};
	for (unsigned i = 0; i < SHARE_DEVICES; i++)
		ret_paths->records[i] = *p->records[i] ? p->records[i] : NULL;
}

static int answer_for(
	const struct root *root, const struct grant_node *node, const char *pod, struct err *err)
{
	const struct grant_container container = {
		.pod_uid = pod, .name = "main", .priority = GRANT_NOT_GIVEN};
	char *const ids[] = {(char *)"x-0"};
	char unique[CONTAINER_CACHE_BYTES], assigned[200];
	V1beta1__ContainerAllocateResponse *answer;
	struct assignment a = ASSIGNMENT_NULL;
	struct prepared prepared;
	struct grant_paths paths;
	struct grant grant;
	struct prepare_request request = {
		.pod_uid = pod, .container = "main", .share = &grant.share};
	int r;

	if (prepare_find_unique(&root->settings, pod, "main", unique) < 0)
		grant_draw_unique(unique);
	snprintf(
		assigned, sizeof(assigned), "%s,NVIDIA,4096,30:;", node->inventory->device[0].uuid);
	r = assignment_decode(assigned, &a, err);
	if (r == 0)
		r = grant_plan(node, &container, &a.slots[0], ids, 1, unique, &grant, err);
	if (r == 0)
		r = prepare_container(&root->settings, &request, &prepared, err);
	if (r < 0)
		return r;
	list_paths(&prepared, &paths);
	r = grant_answer(node, &grant, &paths, &answer, err);
	if (r == 0)
		print(answer);
	return r;
}

int main(int argc, char **argv)
{
	struct inventory *inventory = calloc(1, sizeof(*inventory));
	struct grant_node node = {.inventory = inventory, .has_turns = true};
	struct config *config = NULL;
	struct err err = ERR_NULL;
	struct root root;
	unsigned failed;

	if (argc != 4 || !inventory)
		return 2;
	name_root(argv[1], &root);
	if (nvml_library_read_inventory(NULL, inventory, &err) || read_config(&root, &config, &err))
		return fail(&err);
	node.config = config;
	if (library_install(root.state, root.hook, root.settings.version, argv[2], &err) < 0 ||
		prepare_restore(&root.settings, &failed, &err) < 0 ||
		answer_for(&root, &node, argv[3], &err) < 0)
		return fail(&err);
	config_free(config);
	free(inventory);
	return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The world that a command line names. */
#include "plan/load.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static int read_files(struct load *load, const struct options_list *files, struct err *err)
{
	for (size_t i = 0; i < files->count; i++) {
		int result = reader_read_file(files->at[i], &load->objects, err);

		/* whatever is wrong with a file, it is what was given */
		if (result)
			return result == -ENOMEM ? result : -EINVAL;
	}
	return 0;
}

/* Who may not read them has pods of files without their priorities. */
static int read_classes(struct load *load, struct err *err)
{
	struct err ignored = ERR_NULL;
	int result = live_list(load->live, "/apis/scheduling.k8s.io/v1/priorityclasses", NULL,
		"PriorityClass", &load->live_objects, &ignored);

	return result == -ENOMEM ? err_set(err, ENOMEM, "no memory") : 0;
}

static int read_cluster(struct load *load, const struct options *options, struct err *err)
{
	static const struct {
		const char *path, *kind;
	} collections[] = {{"/api/v1/nodes", "Node"}, {"/api/v1/pods", "Pod"},
		{"/api/v1/resourcequotas", "ResourceQuota"}};
	int result = live_open(options->kubeconfig, options->context, &load->live, err);

	for (size_t i = 0; i < ARRAY_SIZE(collections) && !result; i++)
		result = live_list(load->live, collections[i].path, NULL, collections[i].kind,
			&load->live_objects, err);
	if (!result)
		result = read_classes(load, err);
	return result;
}

static int imagine(struct load *load, const struct options *options, struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < options->added.count && !result; i++)
		result = world_add_node(&load->world, options->added.at[i], err);
	for (size_t i = 0; i < options->drained.count && !result; i++)
		result = world_drain(&load->world, options->drained.at[i], err);
	return result;
}

int load(const struct options *options, void (*warn)(const char *words), struct load *ret_load,
	struct err *err)
{
	struct world *world = &ret_load->world;
	int result;

	*ret_load = (struct load){.live = NULL};
	if (world_init(world, &options->settings, options->namespace, time(NULL), warn))
		return err_set(err, ENOMEM, "no memory");
	result = read_files(ret_load, &options->nodes, err);
	if (!result)
		result = read_files(ret_load, &options->pods, err);
	if (!result && !options->nodes.count)
		result = read_cluster(ret_load, options, err);
	if (!result)
		result = world_add(world, &ret_load->live_objects, true, err);
	if (!result)
		result = world_add(world, &ret_load->objects, false, err);
	if (!result)
		result = imagine(ret_load, options, err);
	if (result)
		load_deinit(ret_load);
	return result;
}

void load_deinit(struct load *load)
{
	world_deinit(&load->world);
	reader_deinit(&load->objects);
	reader_deinit(&load->live_objects);
	live_close(load->live);
	load->live = NULL;
}

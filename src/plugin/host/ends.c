/* SPDX-License-Identifier: Apache-2.0 */
/* When the slices of containers have lost their last process. */
#include "plugin/host/ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "node/container_end.h"
#include "plugin/host/kept.h"

#define LOG_TOPIC LOG_KUBELET

struct list {
	const struct container_place *place;
	struct container_end *slices;
	size_t count;
};

static void free_slices(struct container_end *slices, size_t count)
{
	for (size_t i = 0; i < count; i++)
		container_end_deinit(&slices[i]);
	free(slices);
}

static int add(void *context, const char *key, const struct kept *kept)
{
	struct list *list = context;
	struct container_end *slices;

	if (!kept || list->count == ENDS_SLICES)
		return 0;
	slices = realloc(list->slices, (list->count + 1) * sizeof(*slices));
	if (!slices)
		return -ENOMEM;
	list->slices = slices;
	if (container_end_init(list->place, &kept->container, &slices[list->count]) == 0)
		list->count++;
	return 0;
}

/* A slice that was listed before keeps its descriptor, and what is known of it. */
static void take_over(struct ends *before, struct container_end *slice)
{
	for (size_t i = 0; i < before->count; i++)
		if (!strcmp(before->slices[i].region, slice->region)) {
			*slice = before->slices[i];
			before->slices[i].fd = -1;
			return;
		}
}

/* Files in the folder come and go by rename, so no lock is needed to read them. */
static void list_slices(struct ends *ends)
{
	struct list list = {.place = &ends->settings->place};
	struct kept_folder folder = KEPT_FOLDER_NULL;
	char path[CONTAINER_PATH_BYTES];
	_cleanup_fd_ int fd = -1;
	struct file_identity id;

	snprintf(path, sizeof(path), "%s/containers", ends->settings->state);
	if (file_identify_at(AT_FDCWD, path, &id) < 0 || id.changed_ns == ends->listed_ns)
		return;
	fd = folder.folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || kept_each(&folder, add, &list) < 0) {
		free(list.slices);
		return;
	}
	for (size_t i = 0; i < list.count; i++)
		take_over(ends, &list.slices[i]);
	free_slices(ends->slices, ends->count);
	ends->slices = list.slices;
	ends->count = list.count;
	ends->listed_ns = id.changed_ns;
}

void ends_look(struct ends *ends)
{
	bool is_opening = ends->looks % ENDS_OPEN_LOOKS == 0;

	if (ends->looks++ % ENDS_LIST_LOOKS == 0)
		list_slices(ends);
	for (size_t i = 0; i < ends->count; i++) {
		struct container_end *slice = &ends->slices[i];
		int r;

		if (is_opening || slice->fd < 0)
			container_end_open(slice);
		r = container_end_look(ends->settings->place.shares, slice);
		if (r < 0)
			log_debug("the end of a slice's last process is not told",
				STR("container", slice->key), STR("why", strerror(-r)));
	}
}

void ends_deinit(struct ends *ends)
{
	free_slices(ends->slices, ends->count);
	ends->slices = NULL;
	ends->count = 0;
}

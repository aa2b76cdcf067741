/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of containers that are gone, where no device plugin of ours has made them. */
#include "monitor/garbage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "monitor/scan.h"
#include "node/folder.h"

#define LOG_TOPIC  LOG_PODS
#define YOUNG_S	   300
#define PATH_BYTES 1024

struct search {
	const char *shares;
	const struct pod_names *pods;
};

static bool is_young(const struct file_identity *folder)
{
	int64_t age_s = (int64_t)time(NULL) - (int64_t)(folder->changed_ns / 1000000000u);

	return age_s < YOUNG_S;
}

/* One that our plugin has made has a share, for as long as the plugin wants it. */
static bool is_ours(const struct search *search, const char *name)
{
	struct file_identity share;
	char path[PATH_BYTES];

	return (size_t)snprintf(path, sizeof(path), "%s/%s", search->shares, name) >=
		       sizeof(path) ||
	       file_identify_at(AT_FDCWD, path, &share) != -ENOENT;
}

static int look_at(void *context, int folder_fd, const char *name)
{
	const struct search *search = context;
	struct file_identity folder;
	char uid[SCAN_UID_BYTES], container[SCAN_NAME_BYTES];
	int r;

	if (!scan_split_name(name, uid, container) || pod_names_find(search->pods, uid) ||
		file_identify_at(folder_fd, name, &folder) || !folder.is_folder ||
		is_young(&folder) || is_ours(search, name))
		return 0;
	r = folder_remove_at(folder_fd, name);
	if (r < 0)
		log_warn("the folder of a container that is gone stays", STR("container", name),
			STR("why", strerror(-r)));
	else
		log_info("the folder of a container that is gone is removed",
			STR("container", name));
	return 0;
}

void garbage_collect(const char *hook, const char *shares, const struct pod_names *pods)
{
	struct search search = {shares, pods};
	char path[PATH_BYTES];
	_cleanup_fd_ int folder_fd = -1;

	if (!pods || !pod_names_are_known(pods) ||
		(size_t)snprintf(path, sizeof(path), "%s/containers", hook) >= sizeof(path))
		return;
	folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd >= 0 && folder_each(folder_fd, look_at, &search) < 0)
		log_warn("folders of containers cannot be read", STR("in", hook));
}

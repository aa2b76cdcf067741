/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests of what the plugin prepares. */
#include "prepare_host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plugin/library.h"
#include "tests/unit/cmocka_ready.h"

void host_make(struct host *h)
{
	struct err err = ERR_NULL;
	FILE *library;

	memset(h, 0, sizeof(*h));
	/* where locks hold, which a container's /tmp may not */
	strcpy(h->root, "/dev/shm/vgpu-prepare-XXXXXX");
	assert_non_null(mkdtemp(h->root));
	snprintf(h->hook, sizeof(h->hook), "%s/hook/vgpu", h->root);
	snprintf(h->state, sizeof(h->state), "%s/state", h->root);
	snprintf(h->shares, sizeof(h->shares), "%s/shares", h->state);
	snprintf(h->turns, sizeof(h->turns), "%s/run/turns", h->root);
	snprintf(h->lock, sizeof(h->lock), "%s/vgpulock", h->root);
	snprintf(h->library, sizeof(h->library), "%s/image.so", h->root);
	h->settings = (struct prepare_settings){
		.place = {.hook = h->hook, .shares = h->shares, .turns = h->turns, .lock = h->lock},
		.state = h->state,
		.version = "1"};
	library = fopen(h->library, "w");
	assert_non_null(library);
	fputs("\177ELF of the image", library);
	fclose(library);
	if (library_install(h->state, h->hook, "1", h->library, &err) < 0)
		fail_msg("%s", err.text);
}

void host_remove(const struct host *host)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", host->root);
	assert_int_equal(system(command), 0);
}

struct share host_share(const struct host *host, const char *pod_uid, const char *container)
{
	struct share share = {.priority = SHARE_DEFAULT_PRIORITY,
		.device_count = 1,
		.devices = {{.uuid = DEVICE_A, .memory_bytes = 1u << 30}}};
	unsigned sum = 0;

	for (const char *c = container; *c; c++)
		sum = 31 * sum + (unsigned char)*c;
	snprintf(share.slice, sizeof(share.slice), "%.40s.%08x", pod_uid, sum);
	snprintf(share.region, sizeof(share.region), "%s/%.20s-%08x.cache", host->hook,
		pod_uid + 20, sum);
	snprintf(share.turns, sizeof(share.turns), "/run/turns");
	return share;
}

static DIR *open_below(const struct host *host, const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", host->root, folder);
	return opendir(path);
}

void host_age(const struct host *host, unsigned seconds)
{
	struct timespec times[2] = {
		{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
	DIR *folder = open_below(host, "state/containers");

	assert_non_null(folder);
	for (struct dirent *e = readdir(folder); e; e = readdir(folder))
		if (e->d_name[0] != '.')
			assert_true(utimensat(dirfd(folder), e->d_name, times, 0) == 0 ||
				    errno == ENOENT); /* another has removed it */
	closedir(folder);
}

void host_forget_boot(const struct host *host)
{
	char command[256];

	snprintf(command, sizeof(command),
		"sed -i 's/\"boot\": \"[^\"]*/\"boot\": \"before/' %s/state/containers/*.json",
		host->root);
	assert_int_equal(system(command), 0);
}

unsigned host_count(const struct host *host, const char *folder)
{
	DIR *opened = open_below(host, folder);
	unsigned count = 0;

	if (!opened)
		return 0;
	for (struct dirent *e = readdir(opened); e; e = readdir(opened))
		count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(opened);
	return count;
}

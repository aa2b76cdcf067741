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

#include "plugin/host/library.h"
#include "tests/unit/cmocka_ready.h"

struct host host;
const struct prepare_name host_name = {"default", "pod"};

void host_make(void)
{
	struct host *h = &host;
	struct err err = ERR_NULL;
	FILE *library;

	memset(h, 0, sizeof(*h));
	/* where locks hold, which a container's /tmp may not */
	strcpy(h->root, "/dev/shm/vgpu-prepare-XXXXXX");
	assert_non_null(mkdtemp(h->root));
	snprintf(h->hook, sizeof(h->hook), "%s/hook/vgpu", h->root);
	snprintf(h->state, sizeof(h->state), "%s/state", h->root);
	snprintf(h->shares, sizeof(h->shares), "%s/state/shares", h->root);
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

void host_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", host.root);
	assert_int_equal(system(command), 0);
}

int host_setup(void **state)
{
	host_make();
	return 0;
}

int host_teardown(void **state)
{
	host_remove();
	return 0;
}

struct share host_share(const char *pod_uid, const char *container)
{
	struct share share = {.priority = SHARE_DEFAULT_PRIORITY,
		.device_count = 1,
		.devices = {{.uuid = DEVICE_A, .memory_bytes = 1u << 30}}};
	unsigned sum = 0;

	for (const char *c = container; *c; c++)
		sum = 31 * sum + (unsigned char)*c;
	snprintf(share.slice, sizeof(share.slice), "%.40s.%08x", pod_uid, sum);
	snprintf(share.region, sizeof(share.region), "%s/%.20s-%08x.cache", host.hook, pod_uid + 20,
		sum);
	snprintf(share.turns, sizeof(share.turns), "/run/turns");
	return share;
}

struct prepared host_prepare_as(const struct prepare_request *request)
{
	struct prepared prepared;
	struct err err = ERR_NULL;

	if (prepare_container(&host.settings, request, &prepared, &err) < 0)
		fail_msg("%s", err.text);
	return prepared;
}

struct prepared host_prepare(const char *pod_uid, const char *container)
{
	struct share share = host_share(pod_uid, container);
	struct prepare_request request = {.pod_uid = pod_uid,
		.container = container,
		.pod_space = host_name.space,
		.pod_name = host_name.name,
		.share = &share};

	return host_prepare_as(&request);
}

void host_restore(void)
{
	struct err err = ERR_NULL;
	unsigned failed;

	if (prepare_restore(&host.settings, &failed, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(failed, 0);
}

void host_collect(const char *const *pod_uids, size_t count)
{
	host_collect_pods(&(struct prepare_pods){.uids = pod_uids, .uid_count = count});
}

void host_collect_pods(const struct prepare_pods *pods)
{
	struct err err = ERR_NULL;

	if (prepare_collect(&host.settings, pods, &err) < 0)
		fail_msg("%s", err.text);
}

static DIR *open_below(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", host.root, folder);
	return opendir(path);
}

void host_age(unsigned seconds)
{
	struct timespec times[2] = {
		{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
	DIR *folder = open_below("state/containers");

	assert_non_null(folder);
	for (struct dirent *e = readdir(folder); e; e = readdir(folder))
		if (e->d_name[0] != '.')
			assert_true(utimensat(dirfd(folder), e->d_name, times, 0) == 0 ||
				    errno == ENOENT); /* another has removed it */
	closedir(folder);
}

void host_forget_boot(void)
{
	char command[256];

	snprintf(command, sizeof(command),
		"sed -i 's/\"boot\": \"[^\"]*/\"boot\": \"before/' %s/state/containers/*.json",
		host.root);
	assert_int_equal(system(command), 0);
}

void host_forget_name(void)
{
	char command[256];

	snprintf(command, sizeof(command),
		"sed -i '/\"name\":/d; /\"namespace\":/d' %s/state/containers/*.json", host.root);
	assert_int_equal(system(command), 0);
}

unsigned host_count(const char *folder)
{
	DIR *opened = open_below(folder);
	unsigned count = 0;

	if (!opened)
		return 0;
	for (struct dirent *e = readdir(opened); e; e = readdir(opened))
		count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(opened);
	return count;
}

unsigned host_mode(const char *path)
{
	struct stat s;

	if (lstat(path, &s) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(s.st_uid, geteuid());
	return s.st_mode;
}

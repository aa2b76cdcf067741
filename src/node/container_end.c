/* SPDX-License-Identifier: Apache-2.0 */
/* When a container's slice has lost its last process. */
#include "node/container_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "node/folder.h"
#include "region/ended.h"

#define FILE_MODE 0444
/* A look that was stopped in between saw another moment than it would tell. */
#define LOOK_MOST_NS 10000000u

int container_end_init(const struct container_place *place, const struct container *container,
	struct container_end *ret_end)
{
	*ret_end = (struct container_end){.fd = -1};
	strcpy(ret_end->key, container->key);
	return container_region_path(place, container, ret_end->region);
}

void container_end_deinit(struct container_end *end)
{
	cleanup_fd(&end->fd);
	end->fd = -1;
	end->life = CONTAINER_UNKNOWN;
}

void container_end_open(struct container_end *end)
{
	struct file_identity id;
	bool is_there = file_identify_at(AT_FDCWD, end->region, &id) == 0;

	if (is_there && end->fd >= 0 && id.device == end->device && id.inode == end->inode)
		return;
	container_end_deinit(end);
	if (!is_there ||
		file_open_regular(AT_FDCWD, end->region, O_RDONLY | O_NOFOLLOW, &end->fd) < 0)
		return;
	if (file_identify(end->fd, &id) < 0) {
		container_end_deinit(end);
		return;
	}
	end->device = id.device;
	end->inode = id.inode;
}

static bool is_told(int folder_fd, const struct container_end *end)
{
	char text[ENDED_BYTES];
	size_t length;

	return end->life == CONTAINER_UNKNOWN &&
	       file_read_regular(folder_fd, ENDED_FILE, O_NOFOLLOW, text, sizeof(text), &length) ==
		       0 &&
	       ended_parse(text, end->device, end->inode);
}

static int tell(const char *shares, const struct container_end *end, uint64_t at_ns)
{
	char path[CONTAINER_PATH_BYTES + CONTAINER_KEY_BYTES], text[ENDED_BYTES];
	_cleanup_fd_ int folder_fd = -1;
	int r;

	snprintf(path, sizeof(path), "%s/%s", shares, end->key);
	folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder_fd < 0)
		return -errno;
	if (is_told(folder_fd, end))
		return 0;
	r = ended_format(at_ns, end->device, end->inode, text);
	return r < 0 ? r
		     : folder_put(folder_fd, ENDED_FILE, text, strlen(text), FILE_MODE,
			       FOLDER_NO_SYNC);
}

int container_end_look(const char *shares, struct container_end *end)
{
	/* Before it is asked: a process that begins meanwhile begins later than what is told. */
	uint64_t now_ns = clock_now_ns();
	bool is_ended;
	int r;

	if (end->fd < 0)
		return 0;
	r = ended_look(end->fd, &is_ended);
	if (r < 0)
		return r;
	if (!is_ended)
		end->life = CONTAINER_LIVES;
	if (!is_ended || end->life == CONTAINER_ENDED || clock_now_ns() - now_ns > LOOK_MOST_NS)
		return 0;
	r = tell(shares, end, now_ns);
	if (r == 0)
		end->life = CONTAINER_ENDED;
	return r;
}

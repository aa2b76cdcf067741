/* SPDX-License-Identifier: Apache-2.0 */
/* Created memory whose descriptors are kept track of by this process alone. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/exports.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "region/shared.h"
#include "tenant/memory/table.h"

static struct table exports; /* key: the mark; a: the handle; c: the holding's serial number */

/* Guards the file that all descriptors are of, and which is known where it has a path. */
static struct lock file_lock;
static struct shared_file known;

/* Whether the descriptor's mark can be looked for later. */
static bool learn_file(int fd)
{
	struct shared_file file;
	LOCK_SCOPE(&file_lock);

	if (shared_find_file(fd, &file) < 0)
		return false;
	if (!known.path[0])
		known = file;
	return file.device == known.device && file.inode == known.inode;
}

static int open_known(void)
{
	struct shared_file file;

	lock_enter(&file_lock);
	file = known;
	lock_leave(&file_lock);
	return file.path[0] ? shared_open_file(&file) : -1;
}

/* As much as an importer in another process is to be charged. */
static bool mark_descriptor(const struct mapped_reference *reference, int fd, uint64_t id)
{
	struct holding h;

	return id && holding_get(HOLDING_CREATED, reference->handle, &h) == 0 &&
	       h.serial == reference->serial && learn_file(fd) &&
	       mark_set(fd, (struct mark){.id = id,
				    .steps = (uint32_t)(round_up_u64((uint64_t)h.units *
									     REGION_UNIT_BYTES,
								MARK_STEP_BYTES) /
							MARK_STEP_BYTES)}) == 0;
}

bool exports_keep(const struct mapped_reference *reference, int fd)
{
	struct table_entry entry = {
		.key = mark_new_id(MARK_OF_MEMORY), .a = reference->handle, .c = reference->serial};
	int saved_errno = errno;
	bool is_marked = mark_descriptor(reference, fd, entry.key);

	errno = saved_errno;
	if (!is_marked)
		return false;
	if (!holding_keep_pin(HOLDING_CREATED, reference->handle, reference->serial))
		log_debug("exported memory was released meanwhile");
	else if (table_put(&exports, entry) < 0)
		log_warn("a charge stays in the books until the process ends");
	return true;
}

static bool is_closed(const struct table_entry *entry, uint64_t fd)
{
	bool is_alive;

	return mark_is_alive((int)fd, entry->key, &is_alive) == 0 && !is_alive;
}

void exports_collect(struct device *device)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;
	int saved_errno = errno;
	_cleanup_fd_ int fd = open_known();

	(void)device;
	while (fd >= 0 && table_take_next(&exports, is_closed, (uint64_t)fd, &cursor, &entry) == 0)
		holding_drop(HOLDING_CREATED, entry.a, (uint32_t)entry.c);
	errno = saved_errno;
}

void exports_reset_after_fork(void)
{
	table_forget(&exports);
	file_lock = (struct lock)LOCK_INIT;
	known = (struct shared_file){.path = {0}};
}

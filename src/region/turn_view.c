/* SPDX-License-Identifier: Apache-2.0 */
/* The turn records, read from outside for people to see. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/listing.h"
#include "region/turn.h"
#include "region/turn_record.h"

#define NAMES_READ 4096 /* of a folder at most: whoever fills it shall not keep us for long */

/* The part of a record that is not the slice's own. */
struct head {
	struct turn_face face;
	struct turn_distrust distrusts[TURN_DISTRUSTS];
};

/* Whoever can make names in the folder may have made a device of one: nothing but a file is opened. */
static int read_head(int folder_fd, const char *name, struct head *ret_head)
{
	_cleanup_fd_ int fd = -1;
	int r = file_open_regular(folder_fd, name, O_RDONLY | O_NOFOLLOW, &fd);

	if (r < 0)
		return r;
	return pread(fd, ret_head, sizeof(*ret_head), 0) == (ssize_t)sizeof(*ret_head) ? 0
										       : -EBADMSG;
}

static void fill(struct turn_view *view, const char *name, const struct head *head,
	const struct turn_claim *claim, uint64_t now_ns)
{
	/* relaxed, all: the copy is ours alone */
	uint64_t since = atomic_load_explicit(&head->face.since_ns, memory_order_relaxed);
	bool is_counted = now_ns < claim->until_ns;

	*view = (struct turn_view){.state = is_counted ? claim->state : TURN_FREE,
		.rank = claim->rank,
		.since_ns = !is_counted			? 0
			    : claim->state == TURN_HOLD ? since
							: claim->ticket_ns,
		.until_ns = is_counted ? claim->until_ns : 0,
		.seen_ns = claim->seen_ns,
		.turns = atomic_load_explicit(&head->face.turns, memory_order_relaxed),
		.held_ns = atomic_load_explicit(&head->face.held_ns, memory_order_relaxed)};
	memcpy(view->slice, name, strlen(name) + 1);
}

/* Notes with each slice of the views whom this one does not believe. */
static void count_distrusts(
	struct turn_view *views, unsigned count, const struct head *head, uint64_t now_ns)
{
	for (unsigned k = 0; k < TURN_DISTRUSTS; k++) {
		const struct turn_distrust *d = &head->distrusts[k];

		/* relaxed, both: the copy is ours alone */
		if (atomic_load_explicit(&d->until_ns, memory_order_relaxed) <= now_ns)
			continue;
		for (unsigned i = 0; i < count; i++)
			views[i].distrusted +=
				turn_record_hash(views[i].slice) ==
				atomic_load_explicit(&d->name_hash, memory_order_relaxed);
	}
}

int turn_read(const char *folder, const char *uuid, uint64_t now_ns, struct turn_view *views,
	unsigned room, unsigned *ret_count)
{
	_cleanup_(listing_close) DIR *dir = NULL;
	struct dirent *entry;
	struct turn_claim claim;
	struct head head;
	unsigned count = 0;
	char path[512];
	int r;

	r = snprintf(path, sizeof(path), "%s/%s", folder, uuid);
	if (r < 0 || (size_t)r >= sizeof(path))
		return -ENAMETOOLONG;
	dir = listing_open(AT_FDCWD, path);
	if (!dir)
		return -errno;
	for (int i = 0; i < NAMES_READ && count < room && (entry = readdir(dir)); i++) {
		if (!turn_record_is_name(entry->d_name) ||
			read_head(dirfd(dir), entry->d_name, &head) < 0 ||
			turn_record_decode(&head.face, &claim) < 0)
			continue;
		fill(&views[count++], entry->d_name, &head, &claim, now_ns);
	}
	for (unsigned i = 0; i < count; i++)
		if (read_head(dirfd(dir), views[i].slice, &head) == 0)
			count_distrusts(views, count, &head, now_ns);
	*ret_count = count;
	return 0;
}

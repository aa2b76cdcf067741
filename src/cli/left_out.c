/* SPDX-License-Identifier: Apache-2.0 */
/* What was not looked at, of what users have made. */
#include "cli/left_out.h"

#include <errno.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/exposition.h"
#include "cli/command.h"
#include "node/lease.h"
#include "node/look.h"
#include "node/root.h"
#include "node/site_list.h"
#include "node/user.h"
#include "node/view.h"
#include "region/region.h"

#define METRIC EXPOSITION_FAMILY
#define LABELS EXPOSITION_LABELS
#include "cli/left_out.def"

/* A user may make any number of them, and each takes time to read. */
static void tell_user(const struct account *u)
{
	const char *of = u->space ? " of a container" : "";
	struct err told = ERR_NULL;
	char name[USER_NAME_BYTES];

	user_name(u->user, name);
	if (u->left_out) {
		(void)err_set(&told, E2BIG,
			"user %s%s has more than %u folders and regions where slices are: %u were "
			"not looked at",
			name, of, SITES_OF_USER, u->left_out);
		command_warn(&told);
	}
	if (u->processes_left_out) {
		(void)err_set(&told, E2BIG,
			"user %s%s has more than %u processes: %u were not looked at, and what "
			"these have mapped may be regions",
			name, of, ACCOUNT_PROCESSES, u->processes_left_out);
		command_warn(&told);
	}
	if (u->has_more_lines) {
		(void)err_set(&told, E2BIG,
			"processes of user %s%s have more mappings than are looked at: regions may "
			"be among the others",
			name, of);
		command_warn(&told);
	}
}

/* Subordinate numbers of a user, most likely. */
static void tell_nobodys(const struct account *u)
{
	struct err told = ERR_NULL;

	if (!u->left_out)
		return;
	(void)err_set(&told, E2BIG,
		"numbers that this machine knows no user of have together more than %u folders "
		"where slices are: %u were not looked at",
		SITES_OF_USER, u->left_out);
	command_warn(&told);
}

static void tell_stuck(void)
{
	struct err told = ERR_NULL;
	pid_t first = 0;
	unsigned count = look_stuck_count(&first);

	if (!count)
		return;
	(void)err_set(&told, ETIMEDOUT,
		"of %u process%s, %d%s, /proc does not answer, as of one that stands still in exec "
		"or "
		"mmap: %s not looked at, and what %s mapped may be regions; to end %s helps",
		count, count == 1 ? "" : "es", (int)first, count == 1 ? "" : " the first",
		count == 1 ? "it was" : "they and others of their users were",
		count == 1 ? "it has" : "these have", count == 1 ? "it" : "them");
	command_warn(&told);
}

static void tell_strange(unsigned count)
{
	struct err told = ERR_NULL;

	(void)err_set(&told, EMEDIUMTYPE,
		"%u mapping%s that may be a region's %s not looked at: %s on a file system that a "
		"user may have mounted and that might never answer",
		count, count == 1 ? "" : "s", count == 1 ? "was" : "were",
		count == 1 ? "it is" : "they are");
	command_warn(&told);
}

static void tell_distrusted(const struct sites_distrusted *d)
{
	char owner[USER_NAME_BYTES];
	struct err told = ERR_NULL;

	user_name(d->owner, owner);
	(void)err_set(&told, EPERM,
		"%u folder%s of slices %s not looked at: others may write there; %.200s%s has mode "
		"%04o; `chmod go-w`, by user %s, makes it right",
		d->count, d->count == 1 ? "" : "s", d->count == 1 ? "was" : "were", d->path,
		d->count == 1 ? "" : ", the first,", d->mode, owner);
	command_warn(&told);
}

static void tell_misnamed(const struct sites_some *m)
{
	struct err told = ERR_NULL;

	(void)err_set(&told, EINVAL, "%u slice%s left out, as no slice can have %s, in %.200s",
		m->count, m->count == 1 ? " was" : "s were",
		m->count == 1 ? "its name" : "their names", m->path);
	command_warn(&told);
}

static void tell_leases(const struct left_out *left)
{
	char holder[32] = "a process";
	struct err told = ERR_NULL;

	if (left->holder)
		snprintf(holder, sizeof(holder), "process %d", (int)left->holder);
	(void)err_set(&told, EAGAIN,
		"%u slice%s left out: %s has a lease on %.200s%s; it is to be ended first",
		left->lease_count, left->lease_count == 1 ? " was" : "s were", holder, left->path,
		left->lease_count == 1 ? "" : ", the first");
	command_warn(&told);
}

/* Those of slices, and those alone. */
static void tell_strangers(const struct sites_some *a, const struct sites_some *b)
{
	const char *path = a->count ? a->path : b->path;
	unsigned count = a->count + b->count;
	struct err told = ERR_NULL;

	(void)err_set(&told, EPERM,
		"%u accounting file%s left out as another user's: %.200s%s; its owner, or root, "
		"has "
		"to remove it",
		count, count == 1 ? " was" : "s were", path, count == 1 ? "" : ", the first");
	command_warn(&told);
}

static void tell_shares(const struct sites_some *shares)
{
	struct err told = ERR_NULL;

	(void)err_set(&told, EINVAL,
		"%u slice%s left out: %.200s/share%s cannot be read as a share file, so nobody "
		"knows its limits",
		shares->count, shares->count == 1 ? " was" : "s were", shares->path,
		shares->count == 1 ? "" : ", the first,");
	command_warn(&told);
}

/* Who can write to a region can break it, and its processes hold what they hold. */
static void tell_broken(const struct sites_some *broken)
{
	struct err told = ERR_NULL;

	(void)err_set(&told, EINVAL,
		"%u accounting file%s broken, or of another version: %.200s%s; what processes of "
		"the slice hold is known to nvidia-smi alone",
		broken->count, broken->count == 1 ? " is" : "s are", broken->path,
		broken->count == 1 ? "" : ", the first");
	command_warn(&told);
}

static void note_lease(struct left_out *left, const struct site *site, bool is_on_share)
{
	_cleanup_fd_ int fd = -1;
	uid_t owner;

	if (!is_on_share) {
		snprintf(left->path, sizeof(left->path), "%s", site->region);
		left->holder = lease_holder_of(site->device, site->inode);
		return;
	}
	snprintf(left->path, sizeof(left->path), "%.240s/share", site->folder);
	left->holder =
		root_open_path(site->folder, &fd, &owner) == 0 ? lease_holder(fd, "share") : 0;
}

bool left_out_note(struct left_out *left, const struct site *site, int outcome)
{
	if (outcome == REGION_E_STRANGERS) {
		site_list_note(&left->strangers, site->region);
		return true;
	}
	if (outcome == VIEW_E_SHARE) {
		site_list_note(&left->shares, site->folder);
		return true;
	}
	if (site->is_likely && (outcome == REGION_E_FOREIGN || outcome == REGION_E_TRUNCATED ||
				       outcome == REGION_E_VERSION)) {
		site_list_note(&left->broken, site->region);
		return true;
	}
	if (outcome != -EAGAIN && outcome != VIEW_E_SHARE_LEASED)
		return false;
	if (!left->lease_count++)
		note_lease(left, site, outcome == VIEW_E_SHARE_LEASED);
	return true;
}

unsigned left_out_count(const struct sites *sites, const struct left_out *left)
{
	return (unsigned)sites_left_out(sites) + look_stuck_count(NULL) + left->lease_count +
	       left->strangers.count + left->shares.count + left->broken.count;
}

void left_out_tell(const struct sites *sites, const struct left_out *left)
{
	for (size_t i = 0; i < sites->accounts.count; i++) {
		const struct account *a = &sites->accounts.list[i];

		if (a->user == ACCOUNT_NOBODYS)
			tell_nobodys(a);
		else
			tell_user(a);
	}
	tell_stuck();
	if (sites->strange_count)
		tell_strange(sites->strange_count);
	if (sites->distrusted.count)
		tell_distrusted(&sites->distrusted);
	if (sites->misnamed.count)
		tell_misnamed(&sites->misnamed);
	if (left->lease_count)
		tell_leases(left);
	if (left->broken.count)
		tell_broken(&left->broken);
	if (left->shares.count)
		tell_shares(&left->shares);
	if (left->strangers.count + sites->strangers.count)
		tell_strangers(&left->strangers, &sites->strangers);
}

void left_out_write(FILE *out, const struct sites *sites, const struct left_out *left)
{
	exposition_write_head(out, &left_out_family);
	exposition_write(out, left_out_family.name, NULL, 0, left_out_count(sites, left));
	exposition_write_head(out, &broken_family);
	exposition_write(out, broken_family.name, NULL, 0, left->broken.count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One slice as it is shown. */
#include "node/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "node/far.h"
#include "node/pids.h"
#include "node/root.h"
#include "node/slice.h"
#include "node/user.h"
#include "policy/device_name.h"
#include "policy/share.h"
#include "region/process.h"
#include "region/region.h"

/* A figure by kind is kept without order: it may for a moment be below zero. */
static uint64_t above_zero(uint64_t bytes)
{
	return bytes > INT64_MAX ? 0 : bytes;
}

static void name_device(const struct inventory *devices, struct view_device *d)
{
	const struct inventory_device *known = inventory_lookup(devices, d->uuid);

	d->index = known ? (int)known->index : -1;
	if (known)
		snprintf(d->name, sizeof(d->name), "%s", inventory_short_name(known));
}

static void take_compute(const struct snapshot_compute *from, struct view_compute *to)
{
	to->is_metered = from->state != 0 || from->busy_ns != 0;
	to->busy_ns = from->busy_ns;
	to->launches = from->launches;
	to->budget_wait_ns = from->budget_wait_ns;
	to->turn_wait_ns = from->turn_wait_ns;
	to->lent_ns = from->lent_ns;
	to->state = from->state;
	to->priority = from->priority;
	/* The file may say anything. */
	to->granted.cores_permille = from->cores_permille <= SHARE_WHOLE_PERMILLE
					     ? from->cores_permille
					     : SHARE_WHOLE_PERMILLE;
	to->granted.cap_permille = from->cap_permille <= SHARE_WHOLE_PERMILLE
					   ? from->cap_permille
					   : SHARE_WHOLE_PERMILLE;
	to->granted.weight = from->weight;
}

static void take_devices(const struct snapshot *s, const struct inventory *devices, struct view *v)
{
	v->device_count = s->device_count;
	for (unsigned i = 0; i < s->device_count; i++) {
		struct view_device *d = &v->devices[i];

		memcpy(d->uuid, s->devices[i].uuid, sizeof(d->uuid));
		d->quota_bytes = s->devices[i].limit_bytes;
		d->refusal_count = s->devices[i].refusal_count;
		d->drift_count = s->devices[i].drift_count;
		d->use.used_bytes = s->devices[i].used_bytes;
		take_compute(&s->devices[i].compute, &d->compute);
		name_device(devices, d);
	}
}

/* A region may name anybody's. Under a slice of root's its programs may be any user's; of a region alone in its usual place nobody knows. */
static bool is_of_slice(pid_t pid, const struct site *site)
{
	uid_t user;

	return !site->owner || (user_who_started(pid, &user) && user == site->owner);
}

static int take_processes(const struct snapshot *s, const struct site *site, struct view *v)
{
	v->processes = calloc(s->process_count + 1, sizeof(*v->processes));
	if (!v->processes)
		return -ENOMEM;
	v->process_count = s->process_count;
	for (unsigned i = 0; i < s->process_count; i++) {
		const struct snapshot_process *from = &s->processes[i];
		struct view_process *p = &v->processes[i];

		p->own_pid = from->pid;
		p->pid = pids_find(from->pid, from->pid_namespace, from->start_time);
		if (p->pid && !is_of_slice(p->pid, site))
			p->pid = 0;
		p->notes = from->notes;
		memcpy(p->command, from->command, sizeof(p->command));
		for (unsigned d = 0; d < v->device_count; d++) {
			p->use[d].used_bytes = from->held_bytes[d];
			p->evicted_bytes[d] = from->evicted_bytes[d];
			v->devices[d].evicted_bytes += from->evicted_bytes[d];
			/* The kinds say what it will hold again. */
			if (from->evicted_bytes[d])
				continue;
			for (int k = 0; k < CHARGE_KIND_COUNT; k++) {
				uint64_t bytes = above_zero(from->kind_bytes[d][k]);

				p->use[d].kind_bytes[k] = bytes;
				v->devices[d].use.kind_bytes[k] += bytes;
			}
		}
	}
	return 0;
}

static bool has_device(const struct view *v, const char *uuid)
{
	for (unsigned i = 0; i < v->device_count; i++)
		if (device_name_is_same(v->devices[i].uuid, uuid))
			return true;
	return false;
}

static uint16_t smaller_limit(uint16_t a, uint16_t b)
{
	return a && (a < b || b == 0) ? a : b;
}

/*
 * Beside what processes have applied, which may be less than the share says, and a moment behind it. Where
 * no process meters, only the share says anything.
 */
static void take_limits(const struct share *share, struct view_device *d)
{
	const struct share_device *line = share_device(share, d->uuid);
	struct view_compute *c = &d->compute;

	/* The processes' notes of it are as old as their last reading of the share. */
	c->state &= ~(unsigned)REGION_COMPUTE_SUSPENDED;
	c->is_mps = *share->mps;
	if (share->is_suspended)
		c->state |= REGION_COMPUTE_SUSPENDED;
	if (!line)
		return;
	if (!c->is_metered) {
		c->granted = line->compute;
		c->priority = share->priority;
		return;
	}
	/* What is in force, and beside it what is to come. */
	if (d->is_pending)
		return;
	c->granted.cores_permille =
		smaller_limit(c->granted.cores_permille, line->compute.cores_permille);
	c->granted.cap_permille =
		smaller_limit(c->granted.cap_permille, line->compute.cap_permille);
}

/* Processes that make no call have what the share said before. */
static void note_pending(const struct share *share, struct view_device *d)
{
	const struct share_device *line = share_device(share, d->uuid);

	if (!line)
		return;
	d->share_quota_bytes = line->memory_bytes == SHARE_UNLIMITED ? 0 : line->memory_bytes;
	d->share_compute = line->compute;
	d->is_pending = true;
}

static int read_share(int folder_fd, struct share *share, struct file_identity *ret_identity)
{
	char text[SHARE_FILE_BYTES];
	struct share_fault fault;
	size_t length;
	int r = file_read_regular(folder_fd, "share", O_NOFOLLOW, text, sizeof(text), &length);

	if (r == 0)
		r = file_identify_at(folder_fd, "share", ret_identity);
	return r < 0 ? r : share_parse(text, length, share, &fault);
}

/*
 * Adds what the share grants and no process has used yet, and quotas that the region does not tell. What cannot be read would hide a
 * quota and that the slice is suspended; -ENOENT where the slice has just gone is nothing to speak of.
 */
static int take_share(
	int folder_fd, const struct inventory *devices, uint64_t applied_ns, struct view *v)
{
	struct file_identity id;
	bool is_pending;
	struct share share;
	int r = read_share(folder_fd, &share, &id);

	if (r < 0)
		return r == -ENOENT && v->process_count == 0 ? 0 : r;
	is_pending = v->process_count > 0 && applied_ns && applied_ns != id.changed_ns;
	for (unsigned i = 0; i < v->device_count; i++)
		if (v->devices[i].quota_bytes == 0)
			v->devices[i].quota_bytes = share_memory_bytes(&share, v->devices[i].uuid);
	for (unsigned i = 0; i < share.device_count && v->device_count < REGION_DEVICES; i++) {
		struct view_device *d = &v->devices[v->device_count];
		bool is_any = strcmp(share.devices[i].uuid, SHARE_ANY_DEVICE) == 0;

		if (has_device(v, share.devices[i].uuid) || (is_any && v->device_count > 0))
			continue;
		snprintf(d->uuid, sizeof(d->uuid), "%s", share.devices[i].uuid);
		d->quota_bytes = share.devices[i].memory_bytes;
		name_device(devices, d);
		v->device_count++;
	}
	for (unsigned i = 0; i < v->device_count && is_pending; i++)
		note_pending(&share, &v->devices[i]);
	for (unsigned i = 0; i < v->device_count; i++) {
		if (v->devices[i].quota_bytes == SHARE_UNLIMITED)
			v->devices[i].quota_bytes = 0;
		take_limits(&share, &v->devices[i]);
	}
	v->is_suspended = share.is_suspended;
	snprintf(v->turns, sizeof(v->turns), "%s", share.turns);
	snprintf(v->mps, sizeof(v->mps), "%s", share.mps);
	return 0;
}

/* Only from the machine's first PID namespace every process is to be seen. */
static bool may_live(uint32_t pid, uint64_t pid_namespace, uint64_t start_time)
{
	struct process_identity me;

	process_identify_self(&me);
	return !process_is_in_first_namespace(&me) ||
	       pids_find(pid, pid_namespace, start_time) != 0;
}

/* Its owner may have put a link there since it was found. */
static int open_folder(const struct site *site, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	uid_t owner;
	int r = root_open_path(site->folder, &fd, &owner);

	if (r == 0 && owner != site->owner)
		r = -EPERM;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* By the process's own path, if just that file is there still. */
static int read_own(const struct site *site, struct snapshot *s)
{
	_cleanup_(far_close) struct far far = FAR_NULL;
	_cleanup_fd_ int fd = -1;
	struct file_identity id;
	int r = far_open(site->pid, site->own_path, &far);

	if (r == 0)
		r = file_open_regular(AT_FDCWD, far.path, O_RDONLY, &fd);
	if (r == 0)
		r = file_identify(fd, &id);
	if (r == 0 && (id.inode != site->inode || id.device != site->device))
		r = -ENOENT;
	if (r == 0)
		return snapshot_read_open(fd, may_live, s);
	return r == -EBADF ? REGION_E_FOREIGN : r;
}

static int read_region(const struct site *site, int folder_fd, int region_fd, struct snapshot *s)
{
	_cleanup_fd_ int fd = -1;
	struct file_identity id;
	int r;

	if (region_fd >= 0)
		return snapshot_read_open(region_fd, may_live, s);
	if (site->mapped) {
		r = mapped_open(site->mapped, &fd);
		if (r == 0)
			return snapshot_read_open(fd, may_live, s);
		if (r != -EPERM && r != -EACCES)
			return r == -EBADF ? REGION_E_FOREIGN : r;
		return site->own_path ? read_own(site, s) : r;
	}
	if (!site->folder)
		return snapshot_read_from_outside(site->region, may_live, s);
	r = file_open_regular(folder_fd, "region", O_RDONLY | O_NOFOLLOW, &fd);
	if (r == 0)
		r = file_identify(fd, &id);
	if (r == 0)
		return id.owner == site->owner ? snapshot_read_open(fd, may_live, s)
					       : REGION_E_STRANGERS;
	return r == -EBADF ? REGION_E_FOREIGN : r;
}

int view_read(const struct site *site, const struct inventory *devices, struct view *ret_view,
	struct err *err)
{
	return view_read_open(site, -1, devices, ret_view, err);
}

int view_read_open(const struct site *site, int region_fd, const struct inventory *devices,
	struct view *ret_view, struct err *err)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	struct view v = {.processes = NULL};
	_cleanup_fd_ int folder_fd = -1;
	int r = !s ? -ENOMEM : site->folder ? open_folder(site, &folder_fd) : 0;

	if (r == 0)
		r = read_region(site, folder_fd, region_fd, s);
	v.read_ns = clock_now_ns();
	if (r != 0 && s)
		s->share_ns = 0;
	snprintf(v.name, sizeof(v.name), "%s", site->name);
	snprintf(v.region, sizeof(v.region), "%s", site->region);
	snprintf(v.mapped, sizeof(v.mapped), "%s", site->mapped ? site->mapped : "");
	if (r == 0) {
		take_devices(s, devices, &v);
		r = take_processes(s, site, &v);
	} else if (r == -ENOENT && site->folder) {
		r = 0; /* no process of it has used a device yet */
	}
	if (r)
		return err_set(
			err, -r, "accounting file '%.200s': %s", site->region, region_explain(r));
	v.is_running = v.process_count > 0;
	if (site->folder)
		snprintf(v.folder, sizeof(v.folder), "%s", site->folder);
	v.is_sim = site->is_sim;
	if (site->folder || site->mapped) {
		user_name(site->owner, v.user);
		v.is_others = site->owner != geteuid();
	}
	/* It may have gone meanwhile. */
	if (folder_fd >= 0) {
		r = take_share(folder_fd, devices, s->share_ns, &v);
		if (r < 0) {
			view_clear(&v);
			(void)err_set(err, -r, "share file '%.200s/share': %s", site->folder,
				r == -EINVAL ? "it is none" : strerror(-r));
			return r == -EAGAIN ? VIEW_E_SHARE_LEASED : VIEW_E_SHARE;
		}
		v.is_running |= slice_is_running(folder_fd, site->folder, site->owner);
	}
	*ret_view = v;
	return 0;
}

void view_print_name(const struct view *view, char *to, size_t size)
{
	snprintf(to, size, "%s%s%s", view->is_others ? view->user : "", view->is_others ? "/" : "",
		view->name);
}

void view_clear(struct view *view)
{
	free(view->processes);
	view->processes = NULL;
	view->process_count = 0;
}

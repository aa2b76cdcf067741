/* SPDX-License-Identifier: Apache-2.0 */
/* A region as somebody sees it who is not of the slice. */
#include "region/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/scratch.h"
#include "policy/device_name.h"
#include "region/shared.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"

#define RUNNING_NS UINT64_C(200000000) /* shorter work is shown when it is charged */

#define OWN_AT	   offsetof(struct region_file, own)
#define SLOT_AT(i) (OWN_AT + offsetof(struct region_own, slots) + (i) * sizeof(struct region_slot))

#define SHARED_AT(i) \
	(OWN_AT + offsetof(struct region_own, shared) + (i) * sizeof(struct region_shared))

/* The part of struct region_own before the slots. */
struct head {
	uint64_t magic;
	uint32_t version, size_bytes, device_count, slot_high, shared_high, unused_word;
	uint64_t unused_token, share_ns, clock[2];
	struct region_device devices[REGION_DEVICES];
};
_Static_assert(sizeof(struct head) == offsetof(struct region_own, slots), "struct head");

/* The part of struct hami_region that is read. */
struct names {
	char uuids[REGION_DEVICES][REGION_UUID_BYTES];
	uint64_t limit_bytes[REGION_DEVICES];
};
#define NAMES_AT offsetof(struct hami_region, uuids)
_Static_assert(
	NAMES_AT + offsetof(struct names, limit_bytes) == offsetof(struct hami_region, limit_bytes),
	"struct names");

/* 12 KiB: not on a stack. */
struct reader {
	int fd;
	struct head head;
	struct names names;
	char shared_path[REGION_PATH_BYTES];
	uint64_t live[REGION_SLOTS / 64]; /* a bit a slot whose owner was found alive */
	uint64_t holders[REGION_SLOTS /
			 64]; /* a bit a slot that holds something shared; read when one is dead */
	bool are_holders_read;
	/*
	 * What is shared on the device that is asked for, by the slot of the process that made it and holds it still;
	 * at REGION_SLOTS what others hold.
	 */
	uint64_t bytes_by_maker[REGION_SLOTS + 1];
	snapshot_lives_fn *lives; /* or NULL */
};

static int read_at(int fd, size_t at, void *to, size_t size)
{
	ssize_t got = pread(fd, to, size, (off_t)at);

	if (got < 0)
		return -errno;
	return (size_t)got == size ? 0 : REGION_E_TRUNCATED;
}

/* A process's mapping of a file that has gone is reached by a link of the kernel's. */
static bool is_kernels_link(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0 && strstr(path, "/map_files/");
}

static int open_region(const char *path, int *ret_fd)
{
	int e = file_open_regular(
		AT_FDCWD, path, O_RDONLY | (is_kernels_link(path) ? 0 : O_NOFOLLOW), ret_fd);

	return e == -EBADF ? REGION_E_FOREIGN : e;
}

/* Checks it; the descriptor stays the caller's. r: all zero before, as of begin(). */
static int begin_open(int fd, struct reader *r)
{
	int e = read_at(fd, OWN_AT, &r->head, sizeof(r->head));

	r->fd = fd;
	if (e == REGION_E_TRUNCATED)
		return REGION_E_FOREIGN;
	if (!e && r->head.magic != REGION_MAGIC)
		return REGION_E_FOREIGN;
	if (!e && (r->head.version != REGION_VERSION ||
			  r->head.size_bytes != sizeof(struct region_file)))
		return REGION_E_VERSION;
	if (!e)
		e = read_at(r->fd, NAMES_AT, &r->names, sizeof(r->names));
	if (!e && r->head.shared_high)
		e = read_at(r->fd, OWN_AT + offsetof(struct region_own, shared_path),
			r->shared_path, sizeof(r->shared_path));
	if (e)
		return e;
	if (r->head.device_count > REGION_DEVICES)
		r->head.device_count = REGION_DEVICES;
	if (r->head.slot_high > REGION_SLOTS)
		r->head.slot_high = REGION_SLOTS;
	if (r->head.shared_high > REGION_SHARED)
		r->head.shared_high = REGION_SHARED;
	for (int i = 0; i < REGION_DEVICES; i++)
		r->names.uuids[i][REGION_UUID_BYTES - 1] = '\0';
	return 0;
}

/* Opens and checks what end() closes, in any case. r: all zero, or NULL, for which there is no memory. */
static int begin(const char *path, struct reader *r)
{
	int e;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	e = open_region(path, &r->fd);
	return e ? e : begin_open(r->fd, r);
}

static void end(struct reader *r)
{
	if (r)
		cleanup_fd(&r->fd);
}

/* Once, as there may be as many dead as there are shared allocations. */
static int read_holders(struct reader *r)
{
	struct region_shared j;

	if (r->are_holders_read)
		return 0;
	for (unsigned i = 0; i < r->head.shared_high; i++) {
		int e = read_at(r->fd, SHARED_AT(i), &j, sizeof(j));

		if (e)
			return e;
		for (unsigned k = 0; j.word && k < REGION_SLOTS / 64; k++)
			r->holders[k] |= j.holders[k];
	}
	r->are_holders_read = true;
	return 0;
}

/* Reads slot i; *ret_is_live says whether its owner lives, or children of it that may keep what it held. */
static int read_slot(struct reader *r, unsigned i, struct region_slot *ret_slot, bool *ret_is_live)
{
	int e = read_at(r->fd, SLOT_AT(i), ret_slot, sizeof(*ret_slot));
	enum slot_owner owner;

	*ret_is_live = false;
	if (e || ret_slot->state != SLOT_LIVE)
		return e;
	e = slot_find_owner(r->fd, i, ret_slot, &owner);
	if (!e && owner == SLOT_OWNER_GONE)
		e = read_holders(r);
	if (e)
		return e;
	*ret_is_live =
		owner == SLOT_OWNER_UNKNOWN && r->lives
			? r->lives(ret_slot->pid, ret_slot->pid_namespace, ret_slot->start_time)
			: owner != SLOT_OWNER_GONE || slot_is_left(r->fd, i, ret_slot,
							      r->holders[i / 64] >> (i % 64) & 1);
	return 0;
}

static bool slot_is_live(const struct reader *r, unsigned i)
{
	return r->live[i / 64] >> (i % 64) & 1;
}

/*
 * Reads shared allocation i; *ret_bytes is what it stands for as long as somebody alive holds it or a descriptor
 * may, and *ret_maker its maker's slot, or REGION_SLOTS where the maker does not hold it any more.
 */
static int read_shared(const struct reader *r, unsigned i, unsigned *ret_device,
	uint64_t *ret_bytes, unsigned *ret_maker)
{
	struct region_shared j;
	int e = read_at(r->fd, SHARED_AT(i), &j, sizeof(j));
	bool is_held = false;

	*ret_bytes = 0;
	*ret_device = ledger_shared_device(j.word);
	*ret_maker = ledger_shared_slot(j.word);
	if (e || !j.word)
		return e;
	for (unsigned k = 0; k < REGION_SLOTS / 64; k++)
		is_held |= (j.holders[k] & r->live[k]) != 0;
	if (is_held || shared_is_kept_by_files(&j, r->shared_path))
		*ret_bytes = ledger_shared_units(j.word) * REGION_UNIT_BYTES;
	if (!slot_is_live(r, *ret_maker) || !(j.holders[*ret_maker / 64] >> (*ret_maker % 64) & 1))
		*ret_maker = REGION_SLOTS;
	return 0;
}

static uint64_t held_bytes(const struct region_slot *slot, unsigned device)
{
	return (slot->held[device] >> 32) * REGION_UNIT_BYTES;
}

static void add_process(struct snapshot *s, const struct region_slot *slot, unsigned i)
{
	struct snapshot_process *p = &s->processes[s->process_count++];

	*p = (struct snapshot_process){.pid = slot->pid,
		.slot = i,
		.start_time = slot->start_time,
		.pid_namespace = slot->pid_namespace,
		.notes = slot->notes};
	memcpy(p->command, slot->command, sizeof(slot->command));
	for (unsigned d = 0; d < s->device_count; d++) {
		p->held_bytes[d] = held_bytes(slot, d);
		s->devices[d].used_bytes += p->held_bytes[d];
		for (int k = 0; k < CHARGE_KIND_COUNT; k++)
			p->kind_bytes[d][k] = slot->kind_bytes[d][k];
		p->evicted_bytes[d] = slot->evicted_bytes[d];
		p->busy_until_ns[d] = slot->busy_until_ns[d];
	}
}

/* What is shared counts once for the device, and for the process that made it and holds it still. */
static int add_shared(const struct reader *r, struct snapshot *s)
{
	for (unsigned i = 0; i < r->head.shared_high; i++) {
		unsigned device, maker;
		uint64_t bytes;
		int e = read_shared(r, i, &device, &bytes, &maker);

		if (e)
			return e;
		if (device >= s->device_count)
			continue;
		s->devices[device].used_bytes += bytes;
		for (unsigned p = 0; p < s->process_count; p++)
			if (s->processes[p].slot == maker)
				s->processes[p].held_bytes[device] += bytes;
	}
	return 0;
}

/* The part of struct region_compute that is no cells. */
struct compute_head {
	uint64_t budget, ceiling, busy_ns, launches, budget_wait_ns, turn_wait_ns, limits, lent_ns;
	uint64_t elapsed_ns, counted_permille, untracked_poller, unused[5];
};
_Static_assert(sizeof(struct compute_head) == offsetof(struct region_compute, cells),
	"struct compute_head");

static int read_compute(const struct reader *r, unsigned d, struct snapshot_compute *ret_compute)
{
	struct compute_head head;
	int e = read_at(r->fd,
		OWN_AT + offsetof(struct region_own, compute) + d * sizeof(struct region_compute),
		&head, sizeof(head));

	if (e)
		return e;
	*ret_compute = (struct snapshot_compute){.busy_ns = head.busy_ns,
		.launches = head.launches,
		.budget_wait_ns = head.budget_wait_ns,
		.turn_wait_ns = head.turn_wait_ns,
		.lent_ns = head.lent_ns,
		.counted_permille = (uint16_t)(head.counted_permille && head.counted_permille < 1000
						       ? head.counted_permille
						       : 1000),
		.cores_permille = (uint16_t)(head.limits >> 48),
		.cap_permille = (uint16_t)(head.limits >> 32),
		.weight = (uint16_t)(head.limits >> 16),
		.priority = (uint8_t)(head.limits >> 8),
		.state = (uint8_t)head.limits};
	return 0;
}

/* Whether its process says so: it waits for the work, or the end that it expects is yet to come. */
static bool is_running(const struct region_slot *slot, unsigned d, uint64_t now_ns)
{
	return slot->busy_since_ns[d] &&
	       ((slot->busy_since_ns[d] & REGION_BUSY_AWAITED) || slot->busy_until_ns[d] > now_ns);
}

/* Work that runs for long is shown as it runs, and never jumps into view; its process may be waiting for it, and charge nothing meanwhile. */
static void add_running(struct snapshot *s, const uint64_t *since_ns, uint64_t now_ns)
{
	for (unsigned d = 0; d < s->device_count; d++)
		if (since_ns[d] < now_ns && now_ns - since_ns[d] > RUNNING_NS)
			s->devices[d].compute.busy_ns += now_ns - since_ns[d] - RUNNING_NS;
}

static int read_all(struct reader *r, struct snapshot *s)
{
	uint64_t since_ns[REGION_DEVICES], now_ns = clock_now_ns();
	struct region_slot slot;
	bool is_live;
	int e;

	memset(since_ns, 0xff, sizeof(since_ns));
	s->process_count = 0;
	s->share_ns = r->head.share_ns;
	s->device_count = r->head.device_count;
	for (unsigned d = 0; d < s->device_count; d++) {
		s->devices[d] = (struct snapshot_device){.limit_bytes = r->names.limit_bytes[d],
			.refusal_count = r->head.devices[d].refusal_count,
			.drift_count = r->head.devices[d].drift_count};
		memcpy(s->devices[d].uuid, r->names.uuids[d], REGION_UUID_BYTES);
		e = read_compute(r, d, &s->devices[d].compute);
		if (e)
			return e;
	}
	for (unsigned i = 0; i < r->head.slot_high; i++) {
		e = read_slot(r, i, &slot, &is_live);
		if (e)
			return e;
		if (!is_live)
			continue;
		r->live[i / 64] |= UINT64_C(1) << (i % 64);
		add_process(s, &slot, i);
		for (unsigned d = 0; d < s->device_count; d++)
			if (is_running(&slot, d, now_ns) && slot.busy_since_ns[d] < since_ns[d])
				since_ns[d] = slot.busy_since_ns[d];
	}
	add_running(s, since_ns, now_ns);
	return add_shared(r, s);
}

int snapshot_read(const char *path, struct snapshot *ret_snapshot)
{
	return snapshot_read_from_outside(path, NULL, ret_snapshot);
}

int snapshot_read_from_outside(
	const char *path, snapshot_lives_fn *lives, struct snapshot *ret_snapshot)
{
	_cleanup_fd_ int fd = -1;
	int e = open_region(path, &fd);

	return e ? e : snapshot_read_open(fd, lives, ret_snapshot);
}

int snapshot_read_open(int fd, snapshot_lives_fn *lives, struct snapshot *ret_snapshot)
{
	SCRATCH(struct reader, r);
	int e = r ? begin_open(fd, r) : -ENOMEM;

	if (e)
		return e;
	r->lives = lives;
	return read_all(r, ret_snapshot);
}

/* The device's place in the region; device_count where the region does not know it. */
static unsigned find_device(const struct reader *r, const char *uuid)
{
	unsigned d = 0;

	while (d < r->head.device_count && !device_name_is_same(r->names.uuids[d], uuid))
		d++;
	return d;
}

static int read_host_pid(const struct reader *r, unsigned i, uint32_t *ret_pid)
{
	return read_at(r->fd,
		offsetof(struct hami_region, slots) + i * sizeof(struct hami_slot) +
			offsetof(struct hami_slot, host_pid),
		ret_pid, sizeof(*ret_pid));
}

static int visit_slot(struct reader *r, unsigned i, unsigned device, uint64_t shared_bytes,
	snapshot_visit_fn *visit, void *argument)
{
	struct snapshot_member member = {.pid = 0};
	struct region_slot slot;
	bool is_live;
	int e = read_slot(r, i, &slot, &is_live);

	if (e || !is_live)
		return e;
	e = read_host_pid(r, i, &member.host_pid);
	if (e)
		return e;
	member.pid = slot.pid;
	member.pid_namespace = slot.pid_namespace;
	if (device < r->head.device_count)
		member.held_bytes = held_bytes(&slot, device) + shared_bytes;
	memcpy(member.command, slot.command, sizeof(slot.command));
	visit(&member, argument);
	return 0;
}

static int find_living(struct reader *r)
{
	struct region_slot slot;
	bool is_live;

	for (unsigned i = 0; i < r->head.slot_high; i++) {
		int e = read_slot(r, i, &slot, &is_live);

		if (e)
			return e;
		if (is_live)
			r->live[i / 64] |= UINT64_C(1) << (i % 64);
	}
	return 0;
}

static int add_by_maker(struct reader *r, unsigned device)
{
	int e = r->head.shared_high ? find_living(r) : 0;

	for (unsigned i = 0; !e && i < r->head.shared_high; i++) {
		unsigned on, maker;
		uint64_t bytes;

		e = read_shared(r, i, &on, &bytes, &maker);
		if (!e && on == device)
			r->bytes_by_maker[maker] += bytes;
	}
	return e;
}

/* *nobodys_bytes grows by what is shared and held by none of those who are shown. */
static int visit_all(struct reader *r, unsigned device, snapshot_visit_fn *visit, void *argument,
	uint64_t *nobodys_bytes)
{
	int e = device < r->head.device_count ? add_by_maker(r, device) : 0;

	for (unsigned i = 0; !e && i < r->head.slot_high; i++)
		e = visit_slot(r, i, device, r->bytes_by_maker[i], visit, argument);
	*nobodys_bytes += r->bytes_by_maker[REGION_SLOTS];
	return e;
}

int snapshot_visit(const char *path, const char *uuid, snapshot_visit_fn *visit, void *argument)
{
	uint64_t nobodys_bytes = 0;
	SCRATCH(struct reader, r);
	int e = begin(path, r);

	if (!e)
		e = visit_all(r, uuid ? find_device(r, uuid) : REGION_DEVICES, visit, argument,
			&nobodys_bytes);
	end(r);
	return e;
}

int snapshot_core_percent(const char *path, const char *uuid, unsigned *ret_percent)
{
	uint64_t percent = 0;
	SCRATCH(struct reader, r);
	unsigned d;
	int e = begin(path, r);

	if (!e && (d = find_device(r, uuid)) < r->head.device_count)
		e = read_at(r->fd,
			offsetof(struct hami_region, sm_limit_percent) + d * sizeof(percent),
			&percent, sizeof(percent));
	end(r);
	if (!e)
		*ret_percent = percent <= 100 ? (unsigned)percent : 100;
	return e;
}

static void add_held(const struct snapshot_member *member, void *sum)
{
	*(uint64_t *)sum += member->held_bytes;
}

int snapshot_device_use(
	const char *path, const char *uuid, uint64_t *ret_used_bytes, uint64_t *ret_limit_bytes)
{
	uint64_t used = 0, limit = 0;
	SCRATCH(struct reader, r);
	unsigned d;
	int e = begin(path, r);

	if (!e && (d = find_device(r, uuid)) < r->head.device_count) {
		limit = r->names.limit_bytes[d];
		e = visit_all(r, d, add_held, &used, &used);
	}
	end(r);
	if (e)
		return e;
	*ret_used_bytes = used;
	*ret_limit_bytes = limit;
	return 0;
}

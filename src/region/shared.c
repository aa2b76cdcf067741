/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared allocations.
 *
 * Deaths: a shared allocation is entered with its holder's bit before units are in it, and found by its name only
 * when it is complete. A death in between leaves units on their way, which ledger_settle()
 * settles, and a bit, which the reaper of its slot clears; a shared allocation with units and without holders is
 * what shared_sweep() looks for.
 */
#include "region/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/mark.h"
#include "region/filesystem.h"
#include "region/ledger.h"

#define NVIDIA_MAJOR 195 /* of /dev/nvidiactl (the kernel's list of devices) */

#ifndef O_PATH
#define O_PATH 010000000
#endif

/*
 * The threads of one process queue here first, and only one of them asks for the file's lock: what a thread may
 * wait there (50 ms) is meant for another process that is stopped. A sweep looks at other processes' files, which
 * on a busy machine takes longer.
 */
static struct lock own_lock;
#define OWN_WAIT_NS UINT64_C(1000000000)

static int lock_all(const struct region *region, int *ret_fd)
{
	uint64_t deadline = clock_now_ns() + OWN_WAIT_NS;
	int r;

	for (unsigned i = 0; !lock_try_own(&own_lock); i++) {
		if (clock_now_ns() > deadline)
			return -EBUSY;
		lock_rest(i);
	}
	r = region_lock(region, REGION_LOCK_SHARED, ret_fd);
	if (r < 0)
		lock_leave(&own_lock);
	return r;
}

static void unlock_all(int fd)
{
	region_unlock(fd, REGION_LOCK_SHARED);
	lock_leave(&own_lock);
}

static struct region_shared *shared_at(const struct region *region, unsigned i)
{
	return &region->file->own.shared[i];
}

static void set_bit(struct region_shared *j, unsigned slot)
{
	atomic_fetch_or(&j->holders[slot / 64], UINT64_C(1) << (slot % 64));
}

static void clear_bit(struct region_shared *j, unsigned slot)
{
	atomic_fetch_and(&j->holders[slot / 64], ~(UINT64_C(1) << (slot % 64)));
}

static bool has_holders(const struct region_shared *j)
{
	for (unsigned i = 0; i < REGION_SLOTS / 64; i++)
		if (atomic_load(&j->holders[i]))
			return true;
	return false;
}

bool shared_is_held_by(const struct region_shared *j, unsigned slot)
{
	return atomic_load(&j->holders[slot / 64]) >> (slot % 64) & 1;
}

bool shared_is_held_alone(const struct region_shared *j, unsigned slot)
{
	for (unsigned i = 0; i < REGION_SLOTS / 64; i++)
		if (atomic_load(&j->holders[i]) !=
			(i == slot / 64 ? UINT64_C(1) << (slot % 64) : 0))
			return false;
	return true;
}

bool shared_has_holder(const struct region_file *file, unsigned slot)
{
	unsigned high = atomic_load(&file->own.shared_high);

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++)
		if (atomic_load(&file->own.shared[i].word) &&
			shared_is_held_by(&file->own.shared[i], slot))
			return true;
	return false;
}

/* A number for this boot of the kernel, 0 where it does not say. */
static uint64_t read_boot(void)
{
	char boot[FILE_BOOT_BYTES];
	uint64_t hash = 0;

	if (file_read_boot(boot) < 0)
		return 0;
	for (const char *at = boot; *at; at++)
		hash = hash_u64(hash ^ (uint8_t)*at);
	/* the line's end is part of it in regions that exist */
	return hash_u64(hash ^ '\n');
}

/*
 * The path is the same for all shared allocations of a machine and is written by whoever makes one. Relaxed, byte by
 * byte: who reads a torn one cannot open it, and takes the memory for kept.
 */
static void write_path(char *to, const char *path)
{
	for (size_t i = 0; i < REGION_PATH_BYTES; i++)
		if (__atomic_load_n(&to[i], __ATOMIC_RELAXED) != path[i])
			__atomic_store_n(&to[i], path[i], __ATOMIC_RELAXED);
}

static void read_path(const char *from, char ret_path[REGION_PATH_BYTES])
{
	for (size_t i = 0; i < REGION_PATH_BYTES; i++)
		ret_path[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	ret_path[REGION_PATH_BYTES - 1] = '\0';
}

static int find_file(int fd, struct shared_file *ret_file)
{
	struct shared_file file = {.path = {0}};
	struct file_identity id;
	char link[48];
	int r = file_identify(fd, &id);

	if (r < 0)
		return r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, file.path, sizeof(file.path) - 1) < 0)
		return -errno;
	file.device = id.device;
	file.inode = id.inode;
	*ret_file = file;
	return 0;
}

/* Remembers how the file behind the descriptors can be opened by others. */
static int set_file(const struct region *region, struct region_shared *j, uint64_t mark, int fd)
{
	struct shared_file file;
	int r = find_file(fd, &file);

	if (r < 0)
		return r;
	write_path(region->file->own.shared_path, file.path);
	atomic_store(&j->file_device, file.device);
	atomic_store(&j->file_inode, file.inode);
	atomic_store(&j->boot, read_boot());
	atomic_store(&j->mark, mark);
	return 0;
}

/*
 * Root looks at regions of others, too, and such a region may name any file: of the kernel's own file systems there are
 * some where to open a file does something, and behind others is a program that need not answer.
 */
static bool is_harmless(int fd, const struct file_identity *id)
{
	return id->is_regular ? filesystem_of(fd)->is_plain : id->device_major == NVIDIA_MAJOR;
}

int shared_open_file(const struct shared_file *file)
{
	struct file_identity id;
	_cleanup_fd_ int fd = open(file->path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	char again[48];

	if (fd < 0 || file_identify(fd, &id) < 0 || id.device != file->device ||
		id.inode != file->inode || !is_harmless(fd, &id))
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	return open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool shared_is_kept_by_files(
	const struct region_shared *j, const char shared_path[REGION_PATH_BYTES])
{
	uint64_t mark = atomic_load(&j->mark), boot = atomic_load(&j->boot);
	struct shared_file file = {
		.device = atomic_load(&j->file_device), .inode = atomic_load(&j->file_inode)};
	_cleanup_fd_ int fd = -1;
	uint64_t now;
	bool is_alive;

	if (!mark)
		return false;
	/* Who cannot read which boot this is takes it for the one of then. */
	now = boot ? read_boot() : 0;
	if (now && now != boot)
		return false;
	read_path(shared_path, file.path);
	fd = shared_open_file(&file);
	return fd < 0 || mark_is_alive(fd, mark, &is_alive) < 0 || is_alive;
}

/* Under the lock. */
static struct region_shared *find_free(const struct region *region, unsigned *ret_shared)
{
	struct region_own *own = &region->file->own;

	for (unsigned i = 0; i < REGION_SHARED; i++) {
		if (atomic_load(&own->shared[i].word))
			continue;
		if (atomic_load(&own->shared_high) <= i)
			atomic_store(&own->shared_high, i + 1);
		*ret_shared = i;
		return &own->shared[i];
	}
	return NULL;
}

/* Marks are no handles' keys (base/mark.h), so what has the mark has the name. */
static bool has_name(const struct region_shared *j, const struct shared_name *name)
{
	return atomic_load(&j->mark) == name->key ||
	       (atomic_load(&j->key) == name->key &&
		       memcmp(j->handle, name->handle, sizeof(name->handle)) == 0);
}

/* Under the lock. */
static void set_name(struct region_shared *j, const struct shared_name *name)
{
	atomic_store(&j->key, 0);
	memcpy(j->handle, name->handle, sizeof(j->handle));
	FAULT("shared: without a key");
	atomic_store(&j->key, name->key);
}

/* Under the lock: the one with this name or mark, or NULL. */
static struct region_shared *find_name(
	const struct region *region, const struct shared_name *name, unsigned *ret_shared)
{
	unsigned high = atomic_load(&region->file->own.shared_high);

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++) {
		struct region_shared *j = shared_at(region, i);

		if (atomic_load(&j->word) && has_name(j, name)) {
			*ret_shared = i;
			return j;
		}
	}
	return NULL;
}

/* Under the lock. */
static int make(const struct region *region, const struct shared_memory *m, unsigned *ret_shared)
{
	struct region_shared *j, *old = find_name(region, &m->name, ret_shared);
	int r;

	j = find_free(region, ret_shared);
	if (!j)
		return SHARED_E_FULL;
	/* A handle that the driver gave out again: what it named before cannot be opened now. */
	if (old)
		atomic_store(&old->key, 0);
	atomic_store(&j->key, 0);
	atomic_store(&j->mark, 0);
	for (unsigned i = 0; i < REGION_SLOTS / 64; i++)
		atomic_store(&j->holders[i], 0);
	if (m->fd >= 0) {
		r = set_file(region, j, m->mark, m->fd);
		if (r < 0)
			return r;
	}
	set_bit(j, m->slot);
	FAULT("shared: entered");
	ledger_move_to_shared(region->file, m->slot, m->device, m->units, j,
		ledger_shared_word(m->slot, m->device, m->units));
	set_name(j, &m->name);
	return 0;
}

int shared_make(
	const struct region *region, const struct shared_memory *memory, unsigned *ret_shared)
{
	int fd, r = lock_all(region, &fd);

	if (r < 0)
		return r;
	r = make(region, memory, ret_shared);
	unlock_all(fd);
	return r;
}

void shared_grow(const struct region *region, unsigned slot, unsigned shared, uint64_t units)
{
	struct region_shared *j = shared_at(region, shared);
	uint64_t word = atomic_load(&j->word);

	ledger_move_to_shared(
		region->file, slot, ledger_shared_device(word), units, j, word + (units << 32));
}

void shared_shrink(const struct region *region, unsigned slot, unsigned shared, uint64_t units)
{
	struct region_shared *j = shared_at(region, shared);
	uint64_t word = atomic_load(&j->word);

	ledger_move_from_shared(
		region->file, slot, ledger_shared_device(word), units, j, word - (units << 32));
}

int shared_set_mark(const struct region *region, unsigned shared, uint64_t mark, int file)
{
	int fd, r = lock_all(region, &fd);

	if (r < 0)
		return r;
	r = set_file(region, shared_at(region, shared), mark, file);
	unlock_all(fd);
	return r;
}

int shared_set_name(const struct region *region, unsigned shared, const struct shared_name *name)
{
	struct region_shared *old;
	unsigned i;
	int fd, r = lock_all(region, &fd);

	if (r < 0)
		return r;
	old = find_name(region, name, &i);
	if (!old || i != shared) {
		if (old)
			atomic_store(&old->key, 0);
		set_name(shared_at(region, shared), name);
	}
	unlock_all(fd);
	return 0;
}

int shared_is_named(const struct region *region, unsigned shared, const struct shared_name *name,
	bool *ret_is_named)
{
	int fd, r = lock_all(region, &fd);

	if (r < 0)
		return r;
	*ret_is_named = has_name(shared_at(region, shared), name);
	unlock_all(fd);
	return 0;
}

int shared_hold(const struct region *region, unsigned slot, const struct shared_name *name,
	unsigned *ret_shared)
{
	struct region_shared *j;
	int fd, r;

	/* relaxed: a shared allocation that is made at this instant has been found by nobody */
	if (atomic_load_explicit(&region->file->own.shared_high, memory_order_relaxed) == 0)
		return SHARED_E_ABSENT;
	r = lock_all(region, &fd);
	if (r < 0)
		return r;
	j = find_name(region, name, ret_shared);
	if (j)
		set_bit(j, slot);
	unlock_all(fd);
	return j ? 0 : SHARED_E_ABSENT;
}

/* Under the lock. Whether it ended. */
static bool end_if_unheld(const struct region *region, unsigned slot, unsigned i)
{
	struct region_shared *j = shared_at(region, i);

	if (!atomic_load(&j->word) || has_holders(j) ||
		shared_is_kept_by_files(j, region->file->own.shared_path))
		return false;
	ledger_end_shared(region->file, slot, j);
	return true;
}

void shared_let_go(const struct region *region, unsigned slot, unsigned shared)
{
	int fd;

	clear_bit(shared_at(region, shared), slot);
	FAULT("shared: let go");
	/* Without the lock it stays for a sweep. */
	if (lock_all(region, &fd) < 0)
		return;
	end_if_unheld(region, slot, shared);
	unlock_all(fd);
}

void shared_retire(const struct region *region, unsigned shared)
{
	atomic_store(&shared_at(region, shared)->key, 0);
}

uint64_t shared_left_bytes(const struct region *region, unsigned device)
{
	unsigned high = atomic_load(&region->file->own.shared_high);
	uint64_t units = 0;

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++) {
		const struct region_shared *j = shared_at(region, i);
		uint64_t word = atomic_load(&j->word);

		if (word && ledger_shared_device(word) == device && !has_holders(j))
			units += ledger_shared_units(word);
	}
	return units * REGION_UNIT_BYTES;
}

static bool is_worth_a_sweep(const struct region *region)
{
	unsigned high = atomic_load(&region->file->own.shared_high);

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++)
		if (atomic_load(&shared_at(region, i)->word) && !has_holders(shared_at(region, i)))
			return true;
	return false;
}

unsigned shared_sweep(const struct region *region, unsigned slot)
{
	unsigned high = atomic_load(&region->file->own.shared_high), ended = 0;
	int fd;

	if (!is_worth_a_sweep(region) || lock_all(region, &fd) < 0)
		return 0;
	for (unsigned i = 0; i < high && i < REGION_SHARED; i++)
		ended += end_if_unheld(region, slot, i);
	unlock_all(fd);
	return ended;
}

void shared_forget_slot(struct region_file *file, unsigned slot)
{
	unsigned high = atomic_load(&file->own.shared_high);

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++)
		clear_bit(&file->own.shared[i], slot);
}

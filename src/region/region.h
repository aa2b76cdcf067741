/* SPDX-License-Identifier: Apache-2.0 */
/* The region: one file a slice, mapped by all its processes. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/file.h"
#include "region/layout.h"
#include "region/token.h"

/* Where no share and no option names a place, as in HAMi's library. */
#define REGION_DEFAULT_PATH  "/tmp/cudevshr.cache"
#define REGION_DEFAULT_BYTES 48

enum {
	_REGION_E_SUCCESS = 0,
	REGION_E_FOREIGN,   /* the file is something else, or another library's region */
	REGION_E_TRUNCATED, /* the file is shorter than a region */
	REGION_E_VERSION,   /* a region of a version that we do not know */
	REGION_E_REMOTE,    /* other machines may have the file system mounted, too */
	REGION_E_STRANGERS, /* it is another user's */
};

struct region {
	struct region_file *file;
	int fd; /* -1 once region_drop_fd() was called */
	const void *
		children_page; /* the mapping that children of fork() inherit (slot_leave_to_children()) */
	dev_t device;
	ino_t inode;
	const char *path; /* the caller's, and kept alive by it */
	const char *
		share; /* the same: the share file, beside which its slice's end is told (ended.h); or NULL */
	struct token token; /* of this process's slots, where one was needed (slot.c) */
	const void *token_page;
	bool has_slots; /* this process has claimed one through it */
};

#define REGION_NULL      \
	(struct region)  \
	{                \
		.fd = -1 \
	}

/*
 * Where this user's region is by default: REGION_DEFAULT_PATH, or, where that is another user's and not root's, or the user has one there
 * already, the same with a dot and this user's number behind it.
 */
void region_default_path(char ret_path[REGION_DEFAULT_BYTES]);

/* The second of these. */
void region_own_path(char ret_path[REGION_DEFAULT_BYTES]);

/* The same of another user, who sees that at REGION_DEFAULT_PATH, or NULL for nothing. */
void region_default_path_of(
	uid_t user, const struct file_identity *there, char ret_path[REGION_DEFAULT_BYTES]);

/* Whether a file that is to be a user's own region is neither that user's nor root's. */
bool region_is_strangers(const struct file_identity *id, uid_t user);

/*
 * Opens the region at that path, as region_open() does; one that root makes has that mode. REGION_E_STRANGERS where it is neither this user's nor root's, or, at
 * REGION_DEFAULT_PATH, the user has one at region_own_path(), which is then to be opened. One
 * that is not root's is this user's alone to write to: whoever else could cut it short would end its processes.
 */
int region_open_default(const char *path, mode_t roots_mode, struct region *ret_region) MUST_CHECK;

/*
 * Opens the region at path, creating it whole and atomically where there is none (mode 0666,
 * because the processes of a container may be of several users; about 3.8 MB). Nothing of what a broken
 * file holds is changed. Symbolic links are refused (-ELOOP).
 *
 * The mapping is not inherited by fork(). The descriptor stays open until region_drop_fd(): where
 * region_try_locks() says so, locks that it takes live as long as the mapping, even after that.
 */
int region_open(const char *path, struct region *ret_region) MUST_CHECK;

/* The same, and -ENOENT where there is none: nothing is made. */
int region_open_existing(const char *path, struct region *ret_region) MUST_CHECK;

/*
 * Makes clock_now_ns() of this process the time of the region's clock, which is its maker's, whatever time namespace it is in. For
 * a process that has work on the slice's devices, and before it writes a time into the region.
 */
void region_follow_clock(struct region *region);

/* Closes the descriptor, so that a program that closes all its descriptors cannot take ours. */
void region_drop_fd(struct region *region);

/*
 * Whether a lock outlives its descriptor as long as the file is mapped, tried with the byte at `at`, which nobody else
 * locks. Where the mapping is of another file below, as on overlayfs, it does not. -EMFILE, -ENFILE or -ENOMEM where something is missing to
 * try it.
 */
int region_try_locks(const struct region *region, int64_t at, bool *ret_keeps) MUST_CHECK;

/*
 * Opens the region's file once more, as a description of its own, and checks that it is still the
 * same file; -ESTALE where the path now names another one. The caller closes.
 */
int region_reopen(const struct region *region, int *ret_fd) MUST_CHECK;

/*
 * Takes the lock on one byte of the region's file for this thread, through a description of its own
 * that region_unlock() ends. -EBUSY where another process held it for 50 ms, -ESTALE as above.
 */
int region_lock(const struct region *region, int64_t at, int *ret_fd) MUST_CHECK;
void region_unlock(int fd, int64_t at);

/*
 * For a child of fork(): forgets the parent's region, whose mapping it did not inherit. A descriptor
 * that the parent had not dropped yet is closed, because it would keep the parent's slot alive; children_page stays.
 */
void region_reset_after_fork(struct region *region);

/* Unmaps and closes; fit for a region that was never opened. */
void region_close(struct region *region);

/*
 * The entry of the device with this UUID, made where there is none yet. -ENOSPC where all
 * REGION_DEVICES entries are other devices; -EBADMSG where the entry was tampered with. Waits for nobody.
 */
int region_device(struct region *region, const char *uuid, unsigned *ret_device) MUST_CHECK;

/* An outcome that region_open() would have there, told without opening anything; 0 where none is foreseen. */
int region_foresee(const char *path);

/* What an outcome of region_open() means, as a constant sentence, and what would help. */
const char *region_explain(int outcome);
const char *region_remedy(int outcome);

/* SPDX-License-Identifier: Apache-2.0 */
/* A slice on disk: a folder with its share file, its region and the lock of its `vgpu run`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/share.h"

struct slice {
	char name[SHARE_NAME_BYTES];
	char path[SHARE_PATH_BYTES];
	char share[SHARE_PATH_BYTES];
	int root_fd, lock_fd;
};

#define SLICE_NULL                           \
	(struct slice)                       \
	{                                    \
		.root_fd = -1, .lock_fd = -1 \
	}

enum {
	_SLICE_E_SUCCESS = 0,
	SLICE_E_TAKEN, /* another slice has the name */
};

/*
 * Opens the folder of this user's slices, where it is: $VGPU_STATE, else /run/vgpu for root, else
 * $XDG_RUNTIME_DIR/vgpu, else /tmp/vgpu-<uid>; where that name is another user's, /run/user/<uid>/vgpu. No other user may be able to write to it.
 */
int slice_find_root(char ret_root[SHARE_PATH_BYTES], int *ret_fd, struct err *err) MUST_CHECK;

/* Opens that folder, made where it was missing; no other user may be able to write to it. */
int slice_open_root(char ret_root[SHARE_PATH_BYTES], int *ret_fd, struct err *err) MUST_CHECK;

/* Makes root's, which nobody else may write to from then on, whatever is in its place. For root. */
int slice_prepare_root(struct err *err) MUST_CHECK;

/*
 * Makes the slice's folder, which is not to be seen before it is whole: the share file holds the devices
 * of `grant`, the name and the region's path. The slice belongs to this process until
 * slice_finish(). 0, SLICE_E_TAKEN, or -errno; err is set in both cases.
 */
int slice_create(const char *name, const struct share *grant, bool is_sim, struct slice *ret_slice,
	struct err *err) MUST_CHECK;

/*
 * Whether a slice's folder says that it is on the simulated node. Of another user's slice it is not believed: who makes
 * libraries be loaded by a file could choose for root.
 */
bool slice_is_simulated(int folder_fd, uid_t owner);

/* Notes the slice's first process, so that the slice outlives a vgpu that is killed. */
void slice_note_child(const struct slice *slice, pid_t child);

/* Lets go of the slice, and removes it unless processes of it still live. */
void slice_finish(struct slice *slice);

/*
 * Removes those of this user's slices whose `vgpu run` has gone and of which no process lives.
 * Slices of other users are left alone: their folders are not ours to trust.
 */
void slice_sweep(void);

/*
 * Bytes of a slice's file `lock`, each a lock of its own: its vgpu run lives; its share file is changed, or
 * the slice removed; its processes are evicted or brought back.
 */
enum { SLICE_LOCK_RUN, SLICE_LOCK_EDIT, SLICE_LOCK_EVICT };

/* Takes the lock on that byte of the open file. -EAGAIN where another had it for as long as that. */
#define SLICE_LOCK_WAIT_NS UINT64_C(5000000000)
int slice_lock(int lock_fd, int at, uint64_t wait_ns) MUST_CHECK;

/* Whether the folder is that of a slice with a living `vgpu run`, or a process of the owner's that was started in it and lately lived. */
bool slice_is_running(int folder_fd, const char *path, uid_t owner);

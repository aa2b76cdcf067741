/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which slices take turns on a device. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "gpu/inventory.h"
#include "policy/share.h"

#define TURN_FOLDER_COMMON "/dev/shm/vgpu-turns" /* common to all users of the machine */

/*
 * The folder for a new slice: $VGPU_TURNS where it is set, else the common one; made with mode 1777 where
 * it is missing. "" where there is none that could be used; *ret_warning says why where $VGPU_TURNS named it.
 */
void turn_folder_find(char ret_path[SHARE_PATH_BYTES], struct err *ret_warning);

/*
 * As root: makes the folder ($VGPU_TURNS, or the common one) and one in it for each device, of root and open to all; what
 * is another user's is moved out of the way. -errno with err set.
 */
int turn_folder_prepare(const struct inventory *devices, struct err *err) MUST_CHECK;

/*
 * How many slices take turns on the device just now, without the one of that name; -errno where the folder
 * cannot be read. No slice at all is no failure.
 */
int turn_folder_count_slices(
	const char *folder, const char *uuid, const char *except, unsigned *ret_count) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices of `vgpu run`, of every user of this machine, which are in no container of the node's.
 *
 * They are seen as their users' folders say them, by the name of a slice and its user. Nothing is written into their regions: they share
 * devices by turns, and their limits are their own.
 */
#pragma once

#include "monitor/scan.h"
#include "node/sites.h"

/*
 * Reads those that run, as containers without UID and share, whose name is "USER/NAME" and whose views say the rest; one that cannot be
 * read is passed over. -ENOMEM.
 */
int local_read(const struct sites *sites, const struct inventory *devices,
	struct scan *ret_scan) MUST_CHECK;

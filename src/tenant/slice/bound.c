/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a share of the machine binds this process, and is there.
 *
 * The environment has no say in it: it is the tenant's. What a runtime mounts it makes as an empty folder where the source is missing, and
 * who rewrites a share without a rename leaves none for a moment (docs/decisions/0042).
 */
#include "tenant/slice/bound.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/scratch.h"
#include "policy/share.h"

#define LIST_BYTES 4096

/* What cannot be known counts as a mount: on a kernel that says it, that is none. */
static bool is_mount(const char *path)
{
	bool is_mount = true;
	int r = file_is_mounted(path, &is_mount);

	return r == -ENOENT ? false : r < 0 || is_mount;
}

/* Others mount a list of their own, which loads something else, or this library where the environment says what is granted (HAMi's plugin). */
static bool names_library(void)
{
	SCRATCH_ARRAY(char, text, LIST_BYTES);
	size_t length;

	return !text || file_read(SHARE_LIBRARY_LIST, text, LIST_BYTES, &length) < 0 ||
	       strstr(text, SHARE_SYSTEM_LIBRARY "/");
}

static enum bound find(const char **ret_meant)
{
	struct file_identity id;

	*ret_meant = NULL;
	if (file_identify_path(SHARE_SYSTEM_PATH, &id) != -ENOENT)
		return BOUND_BY_SHARE;
	if (is_mount(SHARE_SYSTEM_FOLDER))
		*ret_meant = SHARE_SYSTEM_FOLDER " is a mount";
	else if (is_mount(SHARE_LIBRARY_LIST) && names_library())
		*ret_meant = SHARE_LIBRARY_LIST
			" is a mount, and names a library in " SHARE_SYSTEM_LIBRARY;
	return *ret_meant ? BOUND_TO_MISSING : BOUND_BY_NOTHING;
}

/* What was found before main(): another root shows no share (chroot). Written once, by one thread, and read by all later ones. */
static bool was_bound;

enum bound bound_find(const char **ret_meant)
{
	const char *meant;
	enum bound bound = find(&meant);

	if (bound == BOUND_BY_NOTHING && was_bound) {
		meant = "one was there when the program began";
		bound = BOUND_TO_MISSING;
	}
	if (ret_meant && meant)
		*ret_meant = meant;
	return bound;
}

bool bound_remember(void)
{
	was_bound = bound_find(NULL) != BOUND_BY_NOTHING;
	return was_bound;
}

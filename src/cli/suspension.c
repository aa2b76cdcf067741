/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping a slice off its devices, and letting it go on: one at a time, by SLICE_LOCK_EVICT. */
#include "cli/suspension.h"

#include "base/cleanup.h"
#include "cli/edit.h"
#include "cli/evict.h"
#include "node/slice.h"

/* Reads the share under both locks and gives back the one that is held for moments only. */
static int begin(const char *folder, const char *name, struct edit *ret_edit, struct err *err)
{
	int r = edit_begin(folder, name, ret_edit, err);

	if (r < 0)
		return r;
	edit_unlock(ret_edit);
	return edit_lock(ret_edit, SLICE_LOCK_EVICT, err);
}

/* Other programs may change the share file again when this returns. */
static int change_line(struct edit *e, bool is_suspended, struct err *err)
{
	int r = edit_relock(e, err);

	if (r < 0)
		return r;
	e->share.is_suspended = is_suspended;
	r = edit_commit(e, err);
	edit_unlock(e);
	return r;
}

int suspension_begin(const char *folder, const char *name, bool is_evicting,
	const struct evict_libraries *libraries, struct err *err)
{
	_cleanup_(edit_end) struct edit e = EDIT_NULL;
	int r = begin(folder, name, &e, err);

	if (r == 0)
		r = change_line(&e, true, err);
	if (r < 0 || !is_evicting)
		return r;
	r = evict_slice(&e, libraries, err);
	if (r < 0)
		err_wrap(err, "slice '%s' is suspended, but its memory stays where it is", name);
	return r;
}

int suspension_end(const char *folder, const char *name, const struct evict_libraries *libraries,
	struct err *err)
{
	_cleanup_(edit_end) struct edit e = EDIT_NULL;
	int r = begin(folder, name, &e, err);

	if (r < 0)
		return r;
	r = evict_restore(&e, libraries, err);
	if (r < 0) {
		err_wrap(err, "slice '%s' is not resumed", name);
		return r;
	}
	return change_line(&e, false, err);
}

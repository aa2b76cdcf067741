/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu top: what keys do to the selected slice. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/compute_limits.h"
#include "cli/edit.h"
#include "cli/suspension.h"
#include "cli/top.h"
#include "node/place.h"

#define LEAST_PERMILLE 50 /* a slice that is to have nothing is suspended */

static bool is_changeable(const struct view *v, char *ret_message)
{
	char name[VIEW_NAME_BYTES];

	if (*v->folder)
		return true;
	view_print_name(v, name, sizeof(name));
	snprintf(ret_message, TOP_MESSAGE_BYTES,
		"%.60s was not made by vgpu run: its owner changes its share file or environment",
		name);
	return false;
}

/* Without cores a slice may have all of the device. */
static int step(struct share_compute *c, int step_permille, struct err *err)
{
	int cores = c->cores_permille ? c->cores_permille : SHARE_WHOLE_PERMILLE;
	struct compute_limits limits = {.has_cores = true};

	if (step_permille > 0 && cores >= SHARE_WHOLE_PERMILLE)
		return err_set(err, ERANGE, "it may have all of the device already");
	if (step_permille < 0 && cores <= LEAST_PERMILLE)
		return err_set(err, ERANGE, "less is not right here; s suspends it");
	cores += step_permille;
	if (cores > SHARE_WHOLE_PERMILLE)
		cores = SHARE_WHOLE_PERMILLE;
	if (cores < LEAST_PERMILLE)
		cores = LEAST_PERMILLE;
	limits.compute.cores_permille = (uint16_t)cores;
	/* A softer cap is taken along where it would be in the way. */
	if (c->cap_permille && c->cap_permille < cores) {
		limits.has_cap = true;
		limits.compute.cap_permille = (uint16_t)cores;
	}
	return compute_limits_apply(&limits, c, err);
}

void top_change_cores(const struct top_row *row, int step_permille, char *ret_message)
{
	_cleanup_(edit_end) struct edit edit = EDIT_NULL;
	char name[VIEW_NAME_BYTES];
	struct share_device *line;
	struct err err = ERR_NULL;
	int r;

	if (!is_changeable(row->view, ret_message))
		return;
	view_print_name(row->view, name, sizeof(name));
	r = edit_begin(row->view->folder, name, &edit, &err);
	if (r == 0)
		r = edit_line(&edit.share, row->device ? row->device->uuid : SHARE_ANY_DEVICE,
			&line, &err);
	if (r == 0)
		r = step(&line->compute, step_permille, &err);
	if (r == 0)
		r = edit_commit(&edit, &err);
	if (r < 0)
		snprintf(ret_message, TOP_MESSAGE_BYTES, "%s", err.text);
	else
		snprintf(ret_message, TOP_MESSAGE_BYTES, "%s: cores %g%%", name,
			line->compute.cores_permille / 10.0);
}

void top_suspend_or_resume(const struct top *top, const struct top_row *row, char *ret_message)
{
	struct evict_libraries libraries = {.cuda = NULL};
	const struct view *v = row->view;
	char name[VIEW_NAME_BYTES];
	struct err err = ERR_NULL;
	struct place_sim sim;
	int r = 0;

	if (!is_changeable(v, ret_message))
		return;
	view_print_name(v, name, sizeof(name));
	if (top->is_sim || v->is_sim) {
		r = place_find_sim(&sim, &err);
		libraries = (struct evict_libraries){.cuda = sim.cuda, .nvml = sim.nvml};
	}
	if (r == 0)
		r = v->is_suspended ? suspension_end(v->folder, name, &libraries, &err)
				    : suspension_begin(v->folder, name, false, &libraries, &err);
	if (r < 0)
		snprintf(ret_message, TOP_MESSAGE_BYTES, "%s", err.text);
	else
		snprintf(ret_message, TOP_MESSAGE_BYTES, "%s: %s", name,
			v->is_suspended ? "resumed" : "suspended");
}

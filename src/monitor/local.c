/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of `vgpu run`. */
#include "monitor/local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether it runs; c is zero where it does not. */
static bool read_slice(
	const struct site *site, const struct inventory *devices, struct scan_container *c)
{
	struct view *view = malloc(sizeof(*view));
	struct err err = ERR_NULL;

	if (!view || view_read(site, devices, view, &err)) {
		free(view);
		return false;
	}
	if (!view->is_running) {
		view_clear(view);
		free(view);
		return false;
	}
	snprintf(c->name, sizeof(c->name), "%s/%s", view->user, view->name);
	c->view = view;
	c->fd = -1;
	return true;
}

int local_read(const struct sites *sites, const struct inventory *devices, struct scan *ret_scan)
{
	struct scan scan = {.capacity = sites->count};

	*ret_scan = (struct scan){.count = 0};
	if (!scan.capacity)
		return 0;
	scan.list = calloc(scan.capacity, sizeof(*scan.list));
	if (!scan.list)
		return -ENOMEM;
	for (size_t i = 0; i < scan.capacity; i++)
		scan.count += read_slice(&sites->list[i], devices, &scan.list[scan.count]);
	*ret_scan = scan;
	return 0;
}

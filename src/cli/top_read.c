/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu top: reads the slices, again and again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/top.h"
#include "node/devices.h"

/* To look for slices means to look at every process; to read one that is known is cheap. */
#define SEARCH_NS UINT64_C(3000000000)

static void clear_views(struct view *views, size_t count)
{
	for (size_t i = 0; i < count; i++)
		view_clear(&views[i]);
	free(views);
}

static int look(struct top *top, struct err *err)
{
	uint64_t now_ns = clock_now_ns();
	int r;

	if (top->searched_ns && now_ns - top->searched_ns < SEARCH_NS)
		return 0;
	top->searched_ns = now_ns;
	sites_clear(&top->sites);
	top->sites = SITES_FEW;
	r = sites_find(&top->sites, err);
	return r < 0 || top->devices->count
		       ? r
		       : devices_read(top->is_sim, &top->sites, top->devices, err);
}

/* By the region's path: a name may be that of several. */
static void compare(const struct top *top, struct view *v)
{
	for (size_t i = 0; i < top->view_count; i++)
		if (strcmp(top->views[i].region, v->region) == 0 &&
			strcmp(top->views[i].user, v->user) == 0)
			view_compare(&top->views[i], v);
}

static double rate_of(const struct view_device *d, enum top_sort sort)
{
	const struct view_rates *r = &d->compute.rates;

	switch (sort) {
	case TOP_BY_MEMORY:
		return (double)d->use.used_bytes;
	case TOP_BY_COMPUTE:
		return r->busy;
	case TOP_BY_WAIT:
		return r->budget_wait;
	case TOP_BY_TURN:
		return r->turn_wait;
	case TOP_BY_LAUNCHES:
		return r->launches_per_s;
	case TOP_BY_REFUSALS:
		return (double)d->refusal_count;
	default:
		return 0;
	}
}

static int compare_rows(const void *a, const void *b, void *sort)
{
	const struct top_row *first = a, *second = b;
	enum top_sort by = *(enum top_sort *)sort;
	double one = first->device ? rate_of(first->device, by) : 0;
	double two = second->device ? rate_of(second->device, by) : 0;
	int r;

	/* The largest comes first; equal ones keep an order, or they would jump about. */
	if (one != two)
		return one > two ? -1 : 1;
	r = strcmp(first->view->name, second->view->name);
	if (r == 0)
		r = strcmp(first->view->region, second->view->region);
	return r ? r : (first->device > second->device) - (first->device < second->device);
}

void top_sort_rows(struct top *top)
{
	if (top->row_count)
		qsort_r(top->rows, top->row_count, sizeof(*top->rows), compare_rows, &top->sort);
}

static int make_rows(struct top *top)
{
	size_t count = 0;

	for (size_t i = 0; i < top->view_count; i++)
		count += top->views[i].device_count ? top->views[i].device_count : 1;
	free(top->rows);
	top->row_count = 0;
	top->rows = calloc(count + 1, sizeof(*top->rows));
	if (!top->rows)
		return -ENOMEM;
	for (size_t i = 0; i < top->view_count; i++) {
		const struct view *v = &top->views[i];

		for (unsigned d = 0; d == 0 || d < v->device_count; d++)
			top->rows[top->row_count++] = (struct top_row){
				.view = v, .device = v->device_count ? &v->devices[d] : NULL};
	}
	top_sort_rows(top);
	return 0;
}

int top_read(struct top *top, struct err *err)
{
	struct view *views;
	size_t count = 0;
	int r = look(top, err);

	if (r < 0)
		return r;
	views = calloc(top->sites.count + 1, sizeof(*views));
	if (!views)
		return err_set(err, ENOMEM, "no memory");
	top->left = (struct left_out){.lease_count = 0};
	for (size_t i = 0; i < top->sites.count; i++) {
		struct err ignored = ERR_NULL;
		int outcome = view_read(&top->sites.list[i], top->devices, &views[count], &ignored);

		if (outcome != 0) {
			left_out_note(&top->left, &top->sites.list[i], outcome);
			continue;
		}
		if (views[count].is_running)
			compare(top, &views[count++]);
		else
			view_clear(&views[count]);
	}
	clear_views(top->views, top->view_count);
	top->views = views;
	top->view_count = count;
	return make_rows(top) < 0 ? err_set(err, ENOMEM, "no memory") : 0;
}

void top_clear(struct top *top)
{
	clear_views(top->views, top->view_count);
	sites_clear(&top->sites);
	free(top->rows);
	free(top->devices);
}

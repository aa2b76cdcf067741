/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu top: the table, in as many columns as fit.
 *
 * All text is ASCII when it is written, so that a byte is a column of the terminal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/compute.h"
#include "cli/json.h"
#include "cli/show.h"
#include "cli/size.h"
#include "base/text.h"
#include "cli/top.h"
#include "policy/grant.h"

#define CELL_BYTES	128
#define SLICE_MIN_WIDTH 12
#define WIDTH_MAX	1000
#define LINES_AROUND	3 /* title, head, help or message */

enum { SLICE, DEVICE, MEMORY, COMPUTE, WAIT, TURN, LAUNCHES, REFUSED, STATE, COLUMN_COUNT };

static const char *const titles[COLUMN_COUNT] = {[SLICE] = "SLICE",
	[DEVICE] = "DEVICE",
	[MEMORY] = "MEMORY",
	[COMPUTE] = "COMPUTE",
	[WAIT] = "WAIT%",
	[TURN] = "TSLICE%",
	[LAUNCHES] = "LAUNCH/S",
	[REFUSED] = "REFUSED",
	[STATE] = "STATE"};

/* Columns in the order in which they go where the terminal is too narrow; the rest stays. */
static const int dropped[] = {REFUSED, LAUNCHES, TURN, WAIT, DEVICE, STATE, COMPUTE, MEMORY};

struct table {
	char (*cells)[COLUMN_COUNT][CELL_BYTES];
	size_t count;
	size_t width[COLUMN_COUNT]; /* 0: dropped */
};

static void fill_rates(char (*cell)[CELL_BYTES], const struct view_compute *c)
{
	char granted[COMPUTE_TEXT_BYTES], used[16];
	const struct view_rates *r = &c->rates;

	compute_print_percent(r->is_known, r->busy, used, sizeof(used));
	compute_print_granted(&c->granted, granted, sizeof(granted));
	if (c->is_mps)
		snprintf(cell[COMPUTE], CELL_BYTES, "MPS %u%%", grant_mps_percent(&c->granted));
	else
		snprintf(cell[COMPUTE], CELL_BYTES, "%s/%s", used, *granted ? granted : "-");
	compute_print_percent(r->is_known, r->budget_wait, cell[WAIT], CELL_BYTES);
	compute_print_percent(r->is_known, r->turn_wait, cell[TURN], CELL_BYTES);
	if (!r->is_known)
		strcpy(cell[LAUNCHES], "-");
	else if (r->launches_per_s < 1e7)
		snprintf(cell[LAUNCHES], CELL_BYTES, "%.0f", r->launches_per_s);
	else
		strcpy(cell[LAUNCHES], ">9999999");
}

static void fill(char (*cell)[CELL_BYTES], const struct top_row *row)
{
	const struct view_device *d = row->device;
	char used[SIZE_TEXT_BYTES], quota[SIZE_TEXT_BYTES] = "-";

	for (int i = 0; i < COLUMN_COUNT; i++)
		strcpy(cell[i], "-");
	view_print_name(row->view, cell[SLICE], CELL_BYTES);
	if (d) {
		if (d->index >= 0)
			snprintf(cell[DEVICE], CELL_BYTES, "%d %.20s", d->index, d->name);
		else
			snprintf(cell[DEVICE], CELL_BYTES, "%.12s",
				strcmp(d->uuid, SHARE_ANY_DEVICE) ? d->uuid : "any");
		size_print(d->use.used_bytes, used);
		if (d->quota_bytes)
			size_print(d->quota_bytes, quota);
		snprintf(cell[MEMORY], CELL_BYTES, "%s/%s", used, quota);
		fill_rates(cell, &d->compute);
		snprintf(cell[REFUSED], CELL_BYTES, "%llu", (unsigned long long)d->refusal_count);
		if (*compute_state(d))
			snprintf(cell[STATE], CELL_BYTES, "%s", compute_state(d));
	} else if (row->view->is_suspended) {
		strcpy(cell[STATE], "suspended");
	}
	text_make_ascii(cell[SLICE]);
	text_make_ascii(cell[DEVICE]);
}

static size_t total_width(const struct table *t)
{
	size_t total = 0;

	for (int i = 0; i < COLUMN_COUNT; i++)
		if (t->width[i])
			total += t->width[i] + (i ? 2 : 0);
	return total;
}

static void fit(struct table *t, size_t width)
{
	for (int i = 0; i < COLUMN_COUNT; i++) {
		t->width[i] = strlen(titles[i]);
		for (size_t k = 0; k < t->count; k++)
			if (strlen(t->cells[k][i]) > t->width[i])
				t->width[i] = strlen(t->cells[k][i]);
	}
	/* A long name gives way before a column does. */
	while (total_width(t) > width && t->width[SLICE] > SLICE_MIN_WIDTH)
		t->width[SLICE]--;
	for (size_t i = 0; i < ARRAY_SIZE(dropped) && total_width(t) > width; i++)
		t->width[dropped[i]] = 0;
	if (t->width[SLICE] > width)
		t->width[SLICE] = width;
	/* and has what was left over */
	for (size_t k = 0; k < t->count; k++)
		while (t->width[SLICE] < strlen(t->cells[k][SLICE]) && total_width(t) < width)
			t->width[SLICE]++;
}

static bool is_text(int column)
{
	return column == SLICE || column == DEVICE || column == STATE;
}

/* Nothing is written behind the last one. */
static bool is_last(const struct table *t, int column)
{
	for (int i = column + 1; i < COLUMN_COUNT; i++)
		if (t->width[i])
			return false;
	return is_text(column);
}

static void put_line(FILE *out, const struct table *t, const char *(*cell)(const void *, int),
	const void *of, bool is_selected)
{
	if (is_selected)
		fputs("\x1b[7m", out);
	for (int i = 0; i < COLUMN_COUNT; i++) {
		int width = (int)t->width[i];

		if (width == 0)
			continue;
		fprintf(out, is_text(i) ? "%s%-*.*s" : "%s%*.*s", i ? "  " : "",
			is_last(t, i) ? 0 : width, width, cell(of, i));
	}
	fputs(is_selected ? "\x1b[m\n" : "\n", out);
}

static const char *title_of(const void *of, int column)
{
	(void)of;
	return titles[column];
}

static const char *cell_of(const void *of, int column)
{
	const char(*cells)[CELL_BYTES] = of;

	return cells[column];
}

static void put_title(FILE *out, const struct top *top, size_t width)
{
	static const char *const sorts[] = {"name", "memory", "compute", "waiting for budget",
		"waiting for time slices", "launches", "refusals"};
	unsigned left_out = left_out_count(&top->sites, &top->left);
	char line[160], left[48] = "";

	if (left_out)
		snprintf(left, sizeof(left), " (%u left out)", left_out);
	snprintf(line, sizeof(line), "vgpu top: %zu slices%s, every %g s, by %s; h for help",
		top->view_count, left, (double)top->interval_ns / 1e9, sorts[top->sort]);
	fprintf(out, "%.*s\n", (int)width, line);
}

/* The rows that fit, with the selected one among them. */
static void put_rows(FILE *out, const struct table *t, const struct top_face *face)
{
	size_t room = face->height == 0		    ? t->count
		      : face->height > LINES_AROUND ? face->height - LINES_AROUND
						    : 0;
	bool is_below = face->selected >= room && face->selected < t->count;
	size_t first = is_below && room ? face->selected - room + 1 : 0;

	for (size_t i = first; i < t->count && i < first + room; i++)
		put_line(out, t, cell_of, t->cells[i], face->height && i == face->selected);
}

static void put_last(FILE *out, const struct top_face *face)
{
	char line[TOP_MESSAGE_BYTES];

	snprintf(line, sizeof(line), "%s",
		*face->message	 ? face->message
		: face->has_help ? TOP_HELP
				 : "");
	text_make_ascii(line);
	fprintf(out, "%.*s\n", (int)face->width, line);
}

char *top_draw(const struct top *top, const struct top_face *face)
{
	_cleanup_free_ char(*cells)[COLUMN_COUNT][CELL_BYTES] =
		calloc(top->row_count + 1, sizeof(*cells));
	struct table t = {.cells = cells, .count = top->row_count};
	size_t width = face->width < WIDTH_MAX ? face->width : WIDTH_MAX, size = 0;
	char *text = NULL;
	FILE *out = cells ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	for (size_t i = 0; i < top->row_count; i++)
		fill(cells[i], &top->rows[i]);
	fit(&t, width);
	if (face->height)
		put_title(out, top, width);
	if (top->row_count || face->height)
		put_line(out, &t, title_of, NULL, false);
	if (!top->row_count)
		fprintf(out, "%.*s\n", (int)width, "There are no slices on this machine.");
	put_rows(out, &t, face);
	if (face->height)
		put_last(out, face);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

void top_show_json(const struct top *top)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	printf("{\"time\": %lld.%03ld, \"interval_s\": %.3f, \"slices\": [", (long long)now.tv_sec,
		now.tv_nsec / 1000000, (double)top->interval_ns / 1e9);
	for (size_t i = 0; i < top->view_count; i++) {
		const struct view *v = &top->views[i];

		fputs(i ? ", {" : "{", stdout);
		json_text("name", v->name);
		json_text("user", v->user);
		json_text("region", v->region);
		printf("\"suspended\": %s, ", v->is_suspended ? "true" : "false");
		json_number("processes", v->process_count, true);
		show_json_devices(v);
		putchar('}');
	}
	puts("]}");
}

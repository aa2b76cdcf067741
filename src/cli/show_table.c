/* SPDX-License-Identifier: Apache-2.0 */
/* Views as tables: columns as wide as what stands in them. */
#include <stdio.h>
#include <string.h>

#include "cli/compute.h"
#include "cli/show.h"
#include "cli/size.h"
#include "base/text.h"

#define COLUMNS_MAX 8
#define CELL_BYTES  256

struct column {
	const char *title;
	bool is_number; /* set against the right edge */
	size_t width;
};

struct row {
	char cell[COLUMNS_MAX][CELL_BYTES];
};

static struct column slice_columns[] = {{"SLICE", false, 0}, {"DEVICE", false, 0},
	{"PROCESSES", true, 0}, {"USED", true, 0}, {"QUOTA", true, 0}, {"%", true, 0},
	{"COMPUTE", false, 0}, {"USED FOR", false, 0}};

static struct column process_columns[] = {{"SLICE", false, 0}, {"DEVICE", false, 0},
	{"PID", true, 0}, {"COMMAND", false, 0}, {"USED", true, 0}, {"USED FOR", false, 0}};

static void put_kinds(char *cell, const struct view_use *use, uint64_t evicted_bytes)
{
	char evicted[SIZE_TEXT_BYTES];
	size_t used = 0;

	cell[0] = '\0';
	for (int k = 0; k < CHARGE_KIND_COUNT; k++) {
		char size[SIZE_TEXT_BYTES];

		if (use->kind_bytes[k] == 0 || used >= CELL_BYTES)
			continue;
		size_print(use->kind_bytes[k], size);
		used += (size_t)snprintf(cell + used, CELL_BYTES - used, "%s%s %s", used ? " " : "",
			show_kind_names[k], size);
	}
	if (evicted_bytes && used < CELL_BYTES) {
		size_print(evicted_bytes, evicted);
		used += (size_t)snprintf(
			cell + used, CELL_BYTES - used, "%sevicted %s", used ? " " : "", evicted);
	}
	if (used == 0)
		strcpy(cell, "-");
}

static void put_device(char *cell, const struct view_device *d)
{
	if (d->index >= 0)
		snprintf(cell, CELL_BYTES, "%d %s", d->index, d->name);
	else
		snprintf(cell, CELL_BYTES, "%s", strcmp(d->uuid, "*") ? d->uuid : "any");
	text_make_harmless(cell);
}

static void fill_slice(struct row *row, const struct view *v, const struct view_device *d)
{
	char(*cell)[CELL_BYTES] = row->cell;

	view_print_name(v, cell[0], CELL_BYTES);
	text_make_harmless(cell[0]);
	snprintf(cell[2], CELL_BYTES, "%u", v->process_count);
	for (int i = 3; i < 8; i++)
		strcpy(cell[i], "-");
	if (!d) {
		strcpy(cell[1], "-");
		return;
	}
	put_device(cell[1], d);
	size_print(d->use.used_bytes, cell[3]);
	if (d->quota_bytes) {
		size_print(d->quota_bytes, cell[4]);
		snprintf(cell[5], CELL_BYTES, "%.0f",
			100.0 * (double)d->use.used_bytes / (double)d->quota_bytes);
	}
	if (d->is_pending && d->share_quota_bytes != d->quota_bytes) {
		char next[SIZE_TEXT_BYTES] = "none";
		size_t used = strlen(cell[4]);

		if (d->share_quota_bytes)
			size_print(d->share_quota_bytes, next);
		snprintf(cell[4] + used, CELL_BYTES - used, "->%s", next);
	}
	compute_print(d, cell[6], CELL_BYTES);
	put_kinds(cell[7], &d->use, d->evicted_bytes);
}

static void fill_process(
	struct row *row, const struct view *v, const struct view_process *p, unsigned device)
{
	char(*cell)[CELL_BYTES] = row->cell;

	view_print_name(v, cell[0], CELL_BYTES);
	text_make_harmless(cell[0]);
	if (device < v->device_count)
		put_device(cell[1], &v->devices[device]);
	else
		strcpy(cell[1], "-");
	/* In brackets: a number that means something only in the process's own namespace. */
	if (p->pid)
		snprintf(cell[2], CELL_BYTES, "%d", p->pid);
	else
		snprintf(cell[2], CELL_BYTES, "(%u)", p->own_pid);
	snprintf(cell[3], CELL_BYTES, "%s", *p->command ? p->command : "?");
	text_make_harmless(cell[3]);
	size_print(p->use[device].used_bytes, cell[4]);
	put_kinds(cell[5], &p->use[device], p->evicted_bytes[device]);
}

#define WIDTH_MOST 128 /* anybody can make a longer name; its row alone is as wide then */

/* Called for every row, twice: once to measure, once to print. */
typedef void row_fn(struct column *columns, size_t count, const struct row *row);

static void measure(struct column *columns, size_t count, const struct row *row)
{
	for (size_t i = 0; i < count; i++) {
		size_t width = text_width(row->cell[i]);

		if (width > WIDTH_MOST)
			width = WIDTH_MOST;
		if (width > columns[i].width)
			columns[i].width = width;
	}
}

static void print_cell(const struct column *c, const char *text, bool is_last)
{
	size_t width = text_width(text);
	int blanks = c->width > width ? (int)(c->width - width) : 0;

	/* printf() would count bytes. */
	if (c->is_number)
		printf("%*s%s", blanks, "", text);
	else
		printf("%s%*s", text, is_last ? 0 : blanks, "");
	fputs(is_last ? "\n" : "  ", stdout);
}

static void print(struct column *columns, size_t count, const struct row *row)
{
	for (size_t i = 0; i < count; i++)
		print_cell(&columns[i], row->cell[i], i + 1 == count);
}

static void visit_slices(const struct view *v, row_fn *visit)
{
	struct row row;

	for (unsigned i = 0; i == 0 || i < v->device_count; i++) {
		fill_slice(&row, v, v->device_count ? &v->devices[i] : NULL);
		visit(slice_columns, ARRAY_SIZE(slice_columns), &row);
	}
}

/* A process has a row for each device of which it holds something, and one at least. */
static void visit_processes(const struct view *v, row_fn *visit)
{
	struct row row;

	for (unsigned i = 0; i < v->process_count; i++) {
		bool is_shown = false;

		for (unsigned d = 0; d < v->device_count; d++) {
			bool is_last = d + 1 == v->device_count;

			if (v->processes[i].use[d].used_bytes == 0 && (is_shown || !is_last))
				continue;
			fill_process(&row, v, &v->processes[i], d);
			visit(process_columns, ARRAY_SIZE(process_columns), &row);
			is_shown = true;
		}
		if (v->device_count == 0) {
			fill_process(&row, v, &v->processes[i], 0);
			visit(process_columns, ARRAY_SIZE(process_columns), &row);
		}
	}
}

void show_table(const struct view *views, size_t count, bool with_processes)
{
	struct column *columns = with_processes ? process_columns : slice_columns;
	size_t column_count =
		with_processes ? ARRAY_SIZE(process_columns) : ARRAY_SIZE(slice_columns);

	for (size_t i = 0; i < column_count; i++)
		columns[i].width = strlen(columns[i].title);
	for (size_t i = 0; i < count; i++)
		(with_processes ? visit_processes : visit_slices)(&views[i], measure);
	for (size_t i = 0; i < column_count; i++)
		print_cell(&columns[i], columns[i].title, i + 1 == column_count);
	for (size_t i = 0; i < count; i++)
		(with_processes ? visit_processes : visit_slices)(&views[i], print);
}

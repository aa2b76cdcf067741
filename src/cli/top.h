/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu top: the parts of the live table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

#include "base/bits.h"
#include "base/err.h"
#include "cli/left_out.h"
#include "gpu/inventory.h"
#include "node/sites.h"
#include "node/view.h"

enum top_sort {
	TOP_BY_NAME,
	TOP_BY_MEMORY,
	TOP_BY_COMPUTE,
	TOP_BY_WAIT,
	TOP_BY_TURN,
	TOP_BY_LAUNCHES,
	TOP_BY_REFUSALS
};

/* A slice on a device; a slice without a device has one row. */
struct top_row {
	const struct view *view;
	const struct view_device *device; /* NULL: it has none */
};

struct top {
	bool is_sim; /* everything is the simulated node's; else what the slices say */
	struct inventory *devices;
	struct sites sites;
	struct left_out left; /* of the last reading */
	uint64_t searched_ns;
	struct view *views; /* of the last reading, with rates since the one before */
	size_t view_count;
	struct top_row *rows; /* sorted */
	size_t row_count;
	enum top_sort sort;
	uint64_t interval_ns;
};

/* Reads all slices; from the second time on with what happened since the last. */
int top_read(struct top *top, struct err *err) MUST_CHECK;
void top_sort_rows(struct top *top);
void top_clear(struct top *top);

/* The parts that are shown besides the slices. */
struct top_face {
	unsigned width, height; /* of the terminal; height 0: no limit, and nothing but the table */
	size_t selected;	/* the count of rows: none is */
	bool has_help;
	const char *message; /* "" for none */
};

/* The table as text of lines, none of them wider than asked for; the caller frees it. NULL: no memory. */
char *top_draw(const struct top *top, const struct top_face *face);

/* One object in one line on standard output. */
void top_show_json(const struct top *top);

enum top_key {
	TOP_KEY_NONE,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_QUIT,
	TOP_KEY_HELP,
	TOP_KEY_MORE,
	TOP_KEY_LESS,
	TOP_KEY_SUSPEND,
	TOP_KEY_SORT, /* and what to sort by added */
};

/* The bytes of a key that have come so far; all zero is none. */
struct top_keys {
	enum { TOP_KEYS_PLAIN, TOP_KEYS_ESCAPE, TOP_KEYS_SEQUENCE } at;
};

/* The key that ends with this byte, or TOP_KEY_NONE. */
unsigned top_key(struct top_keys *keys, unsigned char byte);

#define TOP_HELP \
	"n m c w t l r sort | up down select | + - cores | s suspend, resume | h help | q quit"

/* A terminal that is drawn on, and gives single keys. */
struct top_terminal {
	struct termios before;
	bool is_open;
	int signal_fd;
};

/* 0 or -errno with err set. Signals that end a program, and those that are the terminal's, come from
 * signal_fd from then on. */
int top_terminal_open(struct top_terminal *terminal, struct err *err) MUST_CHECK;
/* As it was before; fit for one that was not opened. */
void top_terminal_close(struct top_terminal *terminal);
/* Stops the program as the terminal's key asks for, with the terminal as it was meanwhile. */
void top_terminal_stop(struct top_terminal *terminal);
void top_terminal_size(unsigned *ret_width, unsigned *ret_height);
void top_terminal_draw(const char *text);

/* Gives the row's slice more or less of the device's time; says in ret_message what became of it. */
#define TOP_MESSAGE_BYTES sizeof(((struct err *)0)->text)
void top_change_cores(const struct top_row *row, int step_permille, char *ret_message);
void top_suspend_or_resume(const struct top *top, const struct top_row *row, char *ret_message);

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu top: watches what slices use, and changes it. */
#include "cli/top.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cli/command.h"
#include "node/place.h"

#define ONCE_INTERVAL_NS UINT64_C(500000000)
#define LIVE_INTERVAL_NS UINT64_C(1000000000)
#define STEP_PERMILLE	 50
#define STATUS_OF_SIGNAL 128

const char help_top[] =
	"  --once              one table, of what happened within the interval, and no more\n"
	"  --json              for programs: an object a line, one for each interval\n"
	"  --interval SECONDS  time between readings, 0.1 to 3600; 1 if not given, 0.5 with "
	"--once\n"
	"  --sim               ask the simulated node for the names of devices\n"
	"\n"
	"One row for each slice and device: MEMORY used and granted; COMPUTE used and granted, in\n"
	"percent of the device's time; how long its threads waited because the slice's part of "
	"the\n"
	"time was used up (WAIT%, the budget) and for its time slice (TSLICE%), in percent of the\n"
	"time; launches a second; allocations that were refused; and whether it is suspended,\n"
	"evicted or blocked. Keys: n m c w t l r sort by a column, up and down select a row, + "
	"and\n"
	"- give it 5% more or less of the device's time, s suspends or resumes it, h helps, q\n"
	"quits. Where input or output is no terminal it is as with --once.\n";

struct request {
	bool is_once, is_json, is_sim;
	uint64_t interval_ns; /* 0: not given */
};

/* "2" or "0.5", with at most three digits behind the point. */
static int read_interval(const char *text, uint64_t *ret_ns)
{
	size_t whole = strspn(text, "0123456789");
	char digits[16];
	uint64_t ms;

	if (whole == 0 || whole > 4)
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%.*s000", (int)whole, text);
	if (text[whole] == '.') {
		size_t more = strspn(text + whole + 1, "0123456789");

		if (more == 0 || more > 3 || text[whole + 1 + more])
			return -EINVAL;
		memcpy(digits + whole, text + whole + 1, more);
	} else if (text[whole]) {
		return -EINVAL;
	}
	if (parse_u64(digits, 3600000, &ms) != 0 || ms < 100)
		return -EINVAL;
	*ret_ns = ms * 1000000;
	return 0;
}

static int read_request(int argc, char **argv, struct request *ret_request, struct err *err)
{
	static const struct option options[] = {
		{"once", no_argument, NULL, 'o'},
		{"json", no_argument, NULL, 'j'},
		{"interval", required_argument, NULL, 'i'},
		{"sim", no_argument, NULL, 's'},
		{0},
	};
	struct request request = {.is_once = false};
	int option;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option == 'o')
			request.is_once = true;
		else if (option == 'j')
			request.is_json = true;
		else if (option == 's')
			request.is_sim = true;
		else if (option != 'i')
			return command_refuse_option(err, option, argv);
		else if (read_interval(optarg, &request.interval_ns) < 0)
			return command_refuse(err,
				"--interval '%s': seconds from 0.1 to 3600 are right, with at most "
				"three decimals",
				optarg);
	}
	if (optind < argc)
		return command_refuse(err, "top takes options only, not '%s'", argv[optind]);
	*ret_request = request;
	return 0;
}

static void wait_interval(const struct top *top)
{
	struct timespec pause = {.tv_sec = (time_t)(top->interval_ns / 1000000000),
		.tv_nsec = (long)(top->interval_ns % 1000000000)};

	nanosleep(&pause, NULL);
}

/* $COLUMNS says how wide lines may be where there is no terminal to ask. */
static unsigned width_of_output(void)
{
	const char *columns = getenv("COLUMNS");
	unsigned width, height;
	uint64_t number;

	top_terminal_size(&width, &height);
	if (!isatty(STDOUT_FILENO) && columns && parse_u64(columns, 1000, &number) == 0 && number)
		width = (unsigned)number;
	return width;
}

static int show_once(struct top *top, const struct request *request, struct err *err)
{
	struct top_face face = {.width = width_of_output(), .message = ""};
	int r = top_read(top, err);

	while (r == 0) {
		_cleanup_free_ char *text = NULL;

		wait_interval(top);
		r = top_read(top, err);
		if (r < 0)
			break;
		if (request->is_json) {
			top_show_json(top);
		} else {
			text = top_draw(top, &face);
			if (!text)
				return err_set(err, ENOMEM, "no memory");
			fputs(text, stdout);
		}
		if (request->is_once || !request->is_json)
			left_out_tell(&top->sites, &top->left);
		/* The reader of the lines has gone: main() says so. */
		if (request->is_once || !request->is_json || fflush(stdout) != 0)
			break;
	}
	return r;
}

/* The state for as long as the table is shown. */
struct live {
	struct top *top;
	struct top_terminal terminal;
	struct top_keys keys;
	char region[sizeof(((struct view *)0)->region)], uuid[REGION_UUID_BYTES]; /* selected */
	char message[TOP_MESSAGE_BYTES];
	bool has_help, is_over;
	int status;
};

static bool is_selected(const struct live *l, const struct top_row *row)
{
	return strcmp(row->view->region, l->region) == 0 &&
	       strcmp(row->device ? row->device->uuid : "", l->uuid) == 0;
}

static void select_row(struct live *l, size_t at)
{
	const struct top_row *row;

	if (at >= l->top->row_count)
		return;
	row = &l->top->rows[at];
	snprintf(l->region, sizeof(l->region), "%s", row->view->region);
	snprintf(l->uuid, sizeof(l->uuid), "%s", row->device ? row->device->uuid : "");
}

/* The selected row's place, or the count of rows: a key that was meant for a slice that went away is for no other. */
static size_t find_selected(const struct live *l)
{
	size_t i = 0;

	while (i < l->top->row_count && !is_selected(l, &l->top->rows[i]))
		i++;
	return i;
}

/* Of a slice that has begun to use its device the row is another one. */
static void keep_selection(struct live *l)
{
	bool is_of_any = !*l->uuid || strcmp(l->uuid, SHARE_ANY_DEVICE) == 0;

	if (!*l->region || find_selected(l) < l->top->row_count)
		return;
	for (size_t i = 0; i < l->top->row_count && is_of_any; i++)
		if (strcmp(l->top->rows[i].view->region, l->region) == 0) {
			select_row(l, i);
			return;
		}
	l->region[0] = '\0';
	snprintf(l->message, sizeof(l->message), "the selected slice has gone");
}

static void draw(struct live *l)
{
	struct top_face face = {
		.selected = find_selected(l), .has_help = l->has_help, .message = l->message};
	_cleanup_free_ char *text = NULL;

	top_terminal_size(&face.width, &face.height);
	text = top_draw(l->top, &face);
	if (text)
		top_terminal_draw(text);
}

static void obey(struct live *l, unsigned key, struct err *err)
{
	size_t at = find_selected(l);
	const struct top_row *row = at < l->top->row_count ? &l->top->rows[at] : NULL;
	bool is_change = key == TOP_KEY_MORE || key == TOP_KEY_LESS || key == TOP_KEY_SUSPEND;

	l->message[0] = '\0';
	if (key == TOP_KEY_QUIT)
		l->is_over = true;
	else if (key == TOP_KEY_HELP)
		l->has_help = !l->has_help;
	else if (key == TOP_KEY_UP)
		select_row(l, row && at > 0 ? at - 1 : 0);
	else if (key == TOP_KEY_DOWN)
		select_row(l, row ? at + 1 : 0);
	else if (key >= TOP_KEY_SORT)
		l->top->sort = (enum top_sort)(key - TOP_KEY_SORT);
	else if (key == TOP_KEY_SUSPEND && row)
		top_suspend_or_resume(l->top, row, l->message);
	else if (is_change && row)
		top_change_cores(
			row, key == TOP_KEY_MORE ? STEP_PERMILLE : -STEP_PERMILLE, l->message);
	else if (is_change)
		snprintf(
			l->message, sizeof(l->message), "no slice is selected; j and k select one");
	top_sort_rows(l->top);
	/* A change is shown; the rates are of a short time then, and right all the same. */
	if (is_change && row && top_read(l->top, err) < 0)
		l->is_over = true;
}

static void read_keys(struct live *l, struct err *err)
{
	unsigned char bytes[64];
	ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < got && !l->is_over; i++) {
		unsigned key = top_key(&l->keys, bytes[i]);

		if (key != TOP_KEY_NONE)
			obey(l, key, err);
	}
}

static void read_signals(struct live *l)
{
	struct signalfd_siginfo signal;

	while (read(l->terminal.signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGWINCH)
			continue;
		if (signal.ssi_signo == SIGTSTP) {
			top_terminal_stop(&l->terminal);
			continue;
		}
		l->is_over = true;
		/* Ctrl-C is how a person leaves. */
		l->status =
			signal.ssi_signo == SIGINT ? 0 : STATUS_OF_SIGNAL + (int)signal.ssi_signo;
	}
}

/* Handles what comes until the next reading is due. */
static void attend(struct live *l, uint64_t until_ns, struct err *err)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = l->terminal.signal_fd, .events = POLLIN}};
	uint64_t now_ns = clock_now_ns();

	while (!l->is_over && now_ns < until_ns) {
		struct timespec left = {.tv_sec = (time_t)((until_ns - now_ns) / 1000000000),
			.tv_nsec = (long)((until_ns - now_ns) % 1000000000)};

		if (ppoll(fds, ARRAY_SIZE(fds), &left, NULL) > 0) {
			if (fds[1].revents)
				read_signals(l);
			if (fds[0].revents & POLLIN)
				read_keys(l, err);
			else if (fds[0].revents)
				l->is_over = true; /* the terminal has gone */
			if (!l->is_over)
				draw(l);
		}
		now_ns = clock_now_ns();
	}
}

static int show_live(struct top *top, int *ret_status, struct err *err)
{
	struct live *l = calloc(1, sizeof(*l));
	int r = l ? top_read(top, err) : err_set(err, ENOMEM, "no memory");

	if (r == 0) {
		l->top = top;
		r = top_terminal_open(&l->terminal, err);
		select_row(l, 0);
	}
	while (r == 0 && !l->is_over) {
		keep_selection(l);
		draw(l);
		attend(l, clock_now_ns() + top->interval_ns, err);
		if (!l->is_over)
			r = top_read(top, err);
	}
	if (l) {
		top_terminal_close(&l->terminal);
		*ret_status = l->status;
	}
	free(l);
	return r;
}

int command_top(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_(top_clear) struct top top = {.sites = SITES_NULL};
	struct request request = {0};
	bool is_live;
	int r = read_request(argc, argv, &request, err);

	if (r)
		return r;
	is_live = !request.is_once && !request.is_json && isatty(STDIN_FILENO) &&
		  isatty(STDOUT_FILENO);
	top.interval_ns = request.interval_ns				     ? request.interval_ns
			  : is_live || (request.is_json && !request.is_once) ? LIVE_INTERVAL_NS
									     : ONCE_INTERVAL_NS;
	top.devices = calloc(1, sizeof(*top.devices));
	if (!top.devices)
		return err_set(err, ENOMEM, "no memory");
	top.is_sim = request.is_sim;
	*ret_status = 0;
	if (r == 0)
		r = is_live ? show_live(&top, ret_status, err) : show_once(&top, &request, err);
	return r;
}

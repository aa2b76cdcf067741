/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu top: the terminal.
 *
 * The table is drawn on the terminal's second screen, so that what stood there before comes back. Signals
 * are read from a descriptor, so whatever ends the program finds the way through top_terminal_close().
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/top.h"

#define DEFAULT_WIDTH  80
#define DEFAULT_HEIGHT 24

#define ENTER	       "\x1b[?1049h\x1b[?25l" /* second screen, no cursor */
#define LEAVE	       "\x1b[?25h\x1b[?1049l"

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

static void write_all(const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t written = write(STDOUT_FILENO, text, left);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return; /* a terminal that is gone will be told by poll() */
		text += written;
		left -= (size_t)written;
	}
}

static int enter(struct top_terminal *t)
{
	struct termios raw = t->before;

	/* keys one by one and not shown; those that make signals stay */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return -errno;
	write_all(ENTER);
	return 0;
}

static void leave(const struct top_terminal *t)
{
	tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
	write_all(LEAVE);
}

static void set_watched(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		sigaddset(ret_set, watched[i]);
}

int top_terminal_open(struct top_terminal *terminal, struct err *err)
{
	struct top_terminal t = {.is_open = true, .signal_fd = -1};
	sigset_t set;
	int r;

	if (tcgetattr(STDIN_FILENO, &t.before) < 0)
		return err_set(err, errno, "the terminal: %s", strerror(errno));
	set_watched(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	t.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t.signal_fd < 0)
		return err_set(err, errno, "signals: %s", strerror(errno));
	r = enter(&t);
	if (r < 0) {
		close(t.signal_fd);
		return err_set(err, -r, "the terminal: %s", strerror(-r));
	}
	*terminal = t;
	return 0;
}

void top_terminal_close(struct top_terminal *terminal)
{
	if (!terminal->is_open)
		return;
	leave(terminal);
	cleanup_fd(&terminal->signal_fd);
	terminal->is_open = false;
}

void top_terminal_stop(struct top_terminal *terminal)
{
	sigset_t stop;

	leave(terminal);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP); /* pending until it is let through, in the next line */
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (enter(terminal) < 0)
		return; /* in the background: the next key shows */
}

void top_terminal_size(unsigned *ret_width, unsigned *ret_height)
{
	struct winsize size;

	*ret_width = DEFAULT_WIDTH;
	*ret_height = DEFAULT_HEIGHT;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
		return;
	*ret_width = size.ws_col;
	*ret_height = size.ws_row;
}

void top_terminal_draw(const char *text)
{
	_cleanup_free_ char *frame = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&frame, &size);
	bool is_first = true;

	if (!out)
		return;
	/* Line by line over what is there: to clear the screen first would flicker. */
	fputs("\x1b[H", out);
	while (*text) {
		size_t length = strcspn(text, "\n");

		fputs(is_first ? "" : "\r\n", out);
		fwrite(text, 1, length, out);
		fputs("\x1b[K", out);
		text += length + (text[length] == '\n');
		is_first = false;
	}
	fputs("\x1b[J", out);
	if (fclose(out) == 0)
		write_all(frame);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines with fields.
 *
 * The formatter is our own because snprintf() may allocate, and this runs inside calls that a
 * program's allocator may itself have made. A line longer than the buffer is cut.
 */
#include "base/log.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/stderr.h"

#define LINE_BYTES 512

_Atomic uint8_t log_levels[LOG_TOPIC_COUNT] = {[0 ... LOG_TOPIC_COUNT - 1] = LOG_WARN};

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};
static const char *const topic_names[] = {
#define X(id, name) name,
	LOG_TOPICS(X)
#undef X
};

const struct log_sink log_guest = {.lines_per_site = LOG_LINES_PER_SITE};
const struct log_sink log_daemon = {.lines_per_site = 0};
static const struct log_sink *_Atomic sink = &log_guest;

struct line {
	char text[LINE_BYTES];
	size_t used;
};

static void put_bytes(struct line *l, const char *bytes, size_t count)
{
	size_t room = sizeof(l->text) - 1 - l->used; /* the last byte is the newline's */

	if (count > room)
		count = room;
	memcpy(l->text + l->used, bytes, count);
	l->used += count;
}

static void put(struct line *l, const char *text)
{
	put_bytes(l, text, strlen(text));
}

static void put_number(struct line *l, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put_bytes(l, digits + at, sizeof(digits) - at);
}

/* Quotes where a space, quote or control byte would make the line ambiguous or spoil a terminal. */
static void put_text(struct line *l, const char *text)
{
	size_t plain = 0;

	while ((unsigned char)text[plain] > ' ' && text[plain] != '"' && text[plain] != '=' &&
		text[plain] != 0x7f)
		plain++;
	if (plain > 0 && text[plain] == '\0') {
		put_bytes(l, text, plain);
		return;
	}
	put(l, "\"");
	for (; *text; text++) {
		char c = *text;

		if ((unsigned char)c < ' ' || c == 0x7f)
			c = '?';
		if (c == '"' || c == '\\')
			put(l, "\\");
		put_bytes(l, &c, 1);
	}
	put(l, "\"");
}

void log_write(_Atomic uint32_t *site_lines, enum log_level level, enum log_topic topic,
	const char *message, const struct log_field *fields)
{
	/* relaxed both: a sink seen late costs or saves one line, and of the lines only the count matters */
	uint32_t most = atomic_load_explicit(&sink, memory_order_relaxed)->lines_per_site;
	uint32_t said = most ? atomic_fetch_add_explicit(site_lines, 1, memory_order_relaxed) : 0;
	struct line l = {.used = 0};
	int saved_errno = errno;

	if (most && said >= most)
		return;
	put(&l, "vgpu: level=");
	put(&l, level_names[level]);
	put(&l, " topic=");
	put(&l, topic_names[topic]);
	put(&l, " pid=");
	put_number(&l, (uint64_t)getpid());
	put(&l, " msg=\"");
	put(&l, message);
	put(&l, "\"");
	for (const struct log_field *f = fields; f->key; f++) {
		put(&l, " ");
		put(&l, f->key);
		put(&l, "=");
		if (f->text)
			put_text(&l, f->text);
		else
			put_number(&l, f->number);
	}
	if (most && said == most - 1)
		put(&l, " (more of this is not shown)");
	l.text[l.used++] = '\n';
	stderr_put(l.text, l.used);
	errno = saved_errno;
}

void log_set_sink(const struct log_sink *to)
{
	/* relaxed: see log_write() */
	atomic_store_explicit(&sink, to, memory_order_relaxed);
}

void log_set_level(enum log_level level)
{
	/* relaxed: see LOG_AT */
	for (int i = 0; i < LOG_TOPIC_COUNT; i++)
		atomic_store_explicit(&log_levels[i], (uint8_t)level, memory_order_relaxed);
}

static int find(const char *const *names, int count, const char *text, size_t length)
{
	for (int i = 0; i < count; i++)
		if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
			return i;
	return -1;
}

/* One word of a list of levels; false where it is unknown. *ret_topic is LOG_TOPIC_COUNT for all topics. */
static bool read_word(const char *text, size_t length, int *ret_topic, int *ret_level)
{
	size_t name = strcspn(text, ",=");
	int topic = LOG_TOPIC_COUNT;

	if (name < length) {
		topic = find(topic_names, LOG_TOPIC_COUNT, text, name);
		text += name + 1;
		length -= name + 1;
	}
	*ret_level = find(level_names, ARRAY_SIZE(level_names), text, length);
	*ret_topic = topic;
	return topic >= 0 && *ret_level >= 0;
}

static const char *walk_levels(const char *text, bool is_set)
{
	const char *unknown = NULL;
	int topic, level;

	while (*text) {
		size_t length = strcspn(text, ",");

		if (!read_word(text, length, &topic, &level))
			unknown = unknown ? unknown : text;
		else if (is_set && topic == LOG_TOPIC_COUNT)
			log_set_level((enum log_level)level);
		else if (is_set) /* relaxed: see LOG_AT */
			atomic_store_explicit(
				&log_levels[topic], (uint8_t)level, memory_order_relaxed);
		text += length;
		text += *text == ',';
	}
	return unknown;
}

void log_set_levels(const char *text, const char **ret_unknown)
{
	*ret_unknown = walk_levels(text, true);
}

const char *log_check_levels(const char *text)
{
	return walk_levels(text, false);
}

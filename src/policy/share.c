/* SPDX-License-Identifier: Apache-2.0 */
/* The share file's grammar. */
#include "policy/share.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "policy/device_name.h"

#define LINE_BYTES     512
#define LINE_WORDS     10

#define PRIORITY_UNSET UINT8_MAX /* while a share is being read */

struct words {
	char text[LINE_BYTES];
	char *word[LINE_WORDS];
	unsigned count;
};

/* Splits a line at spaces and tabs; false where it is too long or has too many words. */
static bool split(const char *line, size_t length, struct words *w)
{
	char *at = w->text;

	w->count = 0;
	if (length >= sizeof(w->text))
		return false;
	memcpy(w->text, line, length);
	w->text[length] = '\0';
	for (;;) {
		at += strspn(at, " \t\r");
		if (*at == '\0' || (w->count == 0 && *at == '#'))
			return true;
		if (w->count == LINE_WORDS)
			return false;
		w->word[w->count++] = at;
		at += strcspn(at, " \t\r");
		if (*at)
			*at++ = '\0';
	}
}

static bool copy_word(char *to, size_t size, const char *word)
{
	size_t length = strlen(word);

	if (length >= size)
		return false;
	memcpy(to, word, length + 1);
	return true;
}

bool share_name_is_valid(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && length < SHARE_NAME_BYTES && text[0] != '.' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       length;
}

bool share_read_percent(const char *word, uint16_t *ret_permille)
{
	size_t whole = strspn(word, "0123456789");
	char digits[8];
	uint64_t value;

	if (whole == 0 || whole > 3)
		return false;
	memcpy(digits, word, whole);
	digits[whole] = '0';
	digits[whole + 1] = '\0';
	if (word[whole] == '.' && word[whole + 1] >= '0' && word[whole + 1] <= '9')
		digits[whole] = word[whole + 1];
	else if (word[whole] != '\0')
		return false;
	if (word[whole] == '.' && word[whole + 2] != '\0')
		return false;
	if (parse_u64(digits, SHARE_WHOLE_PERMILLE, &value) != 0 || value == 0)
		return false;
	*ret_permille = (uint16_t)value;
	return true;
}

#define DEVICE_LINE "a device line reads: device UUID memory SIZE [cores N] [cap N] [weight N]"

/* What stands behind the memory, in any order; NULL, or why it is wrong. */
static const char *read_compute(const struct words *w, struct share_compute *ret_compute)
{
	struct share_compute c = {.cores_permille = 0};
	bool has_cores = false, has_cap = false, has_weight = false;
	uint64_t value;

	for (unsigned i = 4; i + 1 < w->count; i += 2) {
		const char *key = w->word[i], *text = w->word[i + 1];

		if (strcmp(key, "cores") == 0 && !has_cores) {
			if (!share_read_percent(text, &c.cores_permille))
				return "the cores are no percentage; 0.1 to 100 is right";
			has_cores = true;
		} else if (strcmp(key, "cap") == 0 && !has_cap) {
			if (!share_read_percent(text, &c.cap_permille))
				return "the cap is no percentage; 0.1 to 100 is right";
			has_cap = true;
		} else if (strcmp(key, "weight") == 0 && !has_weight) {
			if (parse_u64(text, SHARE_MAX_WEIGHT, &value) != 0 || value == 0)
				return "the weight is no whole number from 1 to 10000";
			c.weight = (uint16_t)value;
			has_weight = true;
		} else {
			return DEVICE_LINE;
		}
	}
	if (has_cores && !has_cap)
		c.cap_permille = c.cores_permille;
	if (has_cap && c.cap_permille < c.cores_permille)
		return "the cap is below the cores";
	*ret_compute = c;
	return NULL;
}

static const char *read_device(struct share *s, const struct words *w)
{
	struct share_device d = {.memory_bytes = 0};
	const char *why;

	if (w->count < 4 || w->count % 2 || strcmp(w->word[2], "memory") != 0)
		return DEVICE_LINE;
	if (!copy_word(d.uuid, sizeof(d.uuid), w->word[1]))
		return "the device's UUID is too long";
	if (strcmp(w->word[3], "unlimited") == 0)
		d.memory_bytes = SHARE_UNLIMITED;
	else if (parse_size(w->word[3], &d.memory_bytes) != 0)
		return "the memory is no size; a number with k, m, g or t behind it is right, "
		       "like 2.5g, or unlimited";
	why = read_compute(w, &d.compute);
	if (why)
		return why;
	for (unsigned i = 0; i < s->device_count; i++)
		if (device_name_is_same(s->devices[i].uuid, d.uuid))
			return "the device has a line already";
	if (s->device_count == SHARE_DEVICES)
		return "there are more than 16 devices";
	s->devices[s->device_count++] = d;
	return NULL;
}

static const char *read_path(char *to, const char *word, const char *again)
{
	if (to[0])
		return again;
	if (word[0] != '/')
		return "a path must be absolute";
	return copy_word(to, SHARE_PATH_BYTES, word) ? NULL : "the path is too long";
}

#define ANY_LINE                                                                           \
	"the line is none of: slice NAME, region PATH, turns PATH, mps PATH, priority N, " \
	"burst N, suspended, exports none, imports any, device UUID memory SIZE, end"

/* Reads one line that is neither the first nor the last; NULL, or why it is wrong. */
static const char *read_line(struct share *s, const struct words *w)
{
	uint64_t value;

	if (strcmp(w->word[0], "device") == 0)
		return read_device(s, w);
	if (w->count == 1 && strcmp(w->word[0], "suspended") == 0) {
		if (s->is_suspended)
			return "the slice is suspended already";
		s->is_suspended = true;
		return NULL;
	}
	if (w->count != 2)
		return ANY_LINE;
	if (strcmp(w->word[0], "slice") == 0) {
		if (s->slice[0])
			return "the slice has a name already";
		if (!share_name_is_valid(w->word[1]))
			return "a slice's name is letters, digits, dots, dashes and underscores";
		return copy_word(s->slice, sizeof(s->slice), w->word[1]) ? NULL : "too long";
	}
	if (strcmp(w->word[0], "region") == 0)
		return read_path(s->region, w->word[1], "the slice has a region already");
	if (strcmp(w->word[0], "turns") == 0)
		return read_path(
			s->turns, w->word[1], "the slice has a folder for time slices already");
	if (strcmp(w->word[0], "mps") == 0)
		return read_path(s->mps, w->word[1], "the slice has a daemon of MPS already");
	if (strcmp(w->word[0], "exports") == 0) {
		if (s->has_no_exports || strcmp(w->word[1], "none") != 0)
			return "of exports a share says once: exports none";
		s->has_no_exports = true;
		return NULL;
	}
	if (strcmp(w->word[0], "imports") == 0) {
		if (s->imports_any || strcmp(w->word[1], "any") != 0)
			return "of imports a share says once: imports any";
		s->imports_any = true;
		return NULL;
	}
	if (strcmp(w->word[0], "priority") == 0) {
		if (s->priority != PRIORITY_UNSET)
			return "the slice has a priority already";
		if (parse_u64(w->word[1], SHARE_MAX_PRIORITY, &value) != 0)
			return "the priority is no whole number from 0 (first) to 9";
		s->priority = (uint8_t)value;
		return NULL;
	}
	if (strcmp(w->word[0], "burst") == 0) {
		if (s->burst_ms)
			return "the slice has a burst already";
		if (parse_u64(w->word[1], SHARE_MAX_BURST_MS, &value) != 0 || value == 0)
			return "the burst is no whole number of ms from 1 to 1000";
		s->burst_ms = (uint16_t)value;
		return NULL;
	}
	return ANY_LINE;
}

static bool is_header(const struct words *w)
{
	return w->count == 2 && strcmp(w->word[0], "vgpu-share") == 0;
}

int share_parse(
	const char *text, size_t length, struct share *ret_share, struct share_fault *ret_fault)
{
	struct share s = {.priority = PRIORITY_UNSET};
	struct share_fault fault = {.line = 0};
	bool has_header = false, has_end = false;
	struct words w;

	if (memchr(text, '\0', length))
		fault.why = "the file holds zero bytes";
	while (length > 0 && !fault.why) {
		const char *newline = memchr(text, '\n', length);
		size_t line = newline ? (size_t)(newline - text) : length;

		fault.line++;
		if (!split(text, line, &w))
			fault.why = "the line is too long";
		else if (w.count == 0)
			;
		else if (has_end)
			fault.why = "there is something behind the end line";
		else if (!has_header && !is_header(&w))
			fault.why = "the first line must be: vgpu-share 1";
		else if (!has_header && strcmp(w.word[1], "1") != 0)
			fault.why = "the file is of a version that this library does not know";
		else if (!has_header)
			has_header = true;
		else if (w.count == 1 && strcmp(w.word[0], "end") == 0)
			has_end = newline != NULL;
		else
			fault.why = read_line(&s, &w);
		text += line + (newline ? 1 : 0);
		length -= line + (newline ? 1 : 0);
	}
	if (!fault.why && !has_end)
		fault.why = "the last line must be: end";
	if (fault.why) {
		*ret_fault = fault;
		return -EINVAL;
	}
	if (s.priority == PRIORITY_UNSET)
		s.priority = SHARE_DEFAULT_PRIORITY;
	*ret_share = s;
	return 0;
}

const struct share_device *share_device(const struct share *share, const char *uuid)
{
	const struct share_device *any = NULL;

	for (unsigned i = 0; i < share->device_count; i++) {
		if (device_name_is_same(share->devices[i].uuid, uuid))
			return &share->devices[i];
		if (strcmp(share->devices[i].uuid, SHARE_ANY_DEVICE) == 0)
			any = &share->devices[i];
	}
	return any;
}

uint64_t share_memory_bytes(const struct share *share, const char *uuid)
{
	const struct share_device *device = share_device(share, uuid);

	return device ? device->memory_bytes : 0;
}

struct output {
	char *buffer;
	size_t size, used;
	bool is_full;
};

static void put(struct output *o, const char *text)
{
	size_t length = strlen(text);

	if (o->is_full || length >= o->size - o->used) {
		o->is_full = true;
		return;
	}
	memcpy(o->buffer + o->used, text, length + 1);
	o->used += length;
}

static void put_number(struct output *o, uint64_t value)
{
	char digits[21];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put(o, digits + at);
}

static void put_pair(struct output *o, const char *key, const char *value)
{
	if (!*value)
		return;
	put(o, key);
	put(o, value);
	put(o, "\n");
}

static void put_percent(struct output *o, const char *key, unsigned permille)
{
	put(o, key);
	put_number(o, permille / 10);
	if (permille % 10) {
		put(o, ".");
		put_number(o, permille % 10);
	}
}

static void put_compute(struct output *o, const struct share_compute *c)
{
	/* Cores without a cap would be read as a cap at the cores. */
	unsigned cap = c->cap_permille ? c->cap_permille : SHARE_WHOLE_PERMILLE;

	if (c->cores_permille)
		put_percent(o, " cores ", c->cores_permille);
	if (cap != c->cores_permille && (c->cores_permille || c->cap_permille))
		put_percent(o, " cap ", cap);
	if (c->weight) {
		put(o, " weight ");
		put_number(o, c->weight);
	}
}

int share_format(const struct share *share, char *buffer, size_t size, size_t *ret_length)
{
	struct output o = {.buffer = buffer, .size = size};

	put(&o, "vgpu-share 1\n");
	put_pair(&o, "slice ", share->slice);
	put_pair(&o, "region ", share->region);
	put_pair(&o, "turns ", share->turns);
	put_pair(&o, "mps ", share->mps);
	if (share->priority != SHARE_DEFAULT_PRIORITY) {
		put(&o, "priority ");
		put_number(&o, share->priority);
		put(&o, "\n");
	}
	if (share->burst_ms) {
		put(&o, "burst ");
		put_number(&o, share->burst_ms);
		put(&o, "\n");
	}
	if (share->is_suspended)
		put(&o, "suspended\n");
	if (share->has_no_exports)
		put(&o, "exports none\n");
	if (share->imports_any)
		put(&o, "imports any\n");
	for (unsigned i = 0; i < share->device_count; i++) {
		put(&o, "device ");
		put(&o, share->devices[i].uuid);
		put(&o, " memory ");
		if (share->devices[i].memory_bytes == SHARE_UNLIMITED)
			put(&o, "unlimited");
		else
			put_number(&o, share->devices[i].memory_bytes);
		put_compute(&o, &share->devices[i].compute);
		put(&o, "\n");
	}
	put(&o, "end\n");
	if (o.is_full)
		return -ENOSPC;
	*ret_length = o.used;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Views as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/show.h"

static const char *const kind_names[] = {
#define X(id, name) name,
	CHARGE_KINDS(X)
#undef X
};

/* A string; bytes that are no ASCII are written as the code points of Latin 1, so it is valid. */
static void put_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void put_key(const char *key)
{
	put_string(key);
	fputs(": ", stdout);
}

static void put_text(const char *key, const char *text)
{
	put_key(key);
	if (*text)
		put_string(text);
	else
		fputs("null", stdout);
	fputs(", ", stdout);
}

static void put_number(const char *key, uint64_t number, bool is_known)
{
	put_key(key);
	if (is_known)
		printf("%" PRIu64, number);
	else
		fputs("null", stdout);
	fputs(", ", stdout);
}

static void put_use(const struct view_use *use)
{
	put_number("used_bytes", use->used_bytes, true);
	put_key("kind_bytes");
	putchar('{');
	for (int k = 0; k < CHARGE_KIND_COUNT; k++)
		printf("%s\"%s\": %" PRIu64, k ? ", " : "", kind_names[k], use->kind_bytes[k]);
	putchar('}');
}

static void put_device(const struct view_device *d)
{
	fputs("        {", stdout);
	put_text("uuid", d->uuid);
	put_number("index", (uint64_t)d->index, d->index >= 0);
	put_text("name", d->name);
	put_number("quota_bytes", d->quota_bytes, d->quota_bytes != 0);
	put_number("refusals", d->refusal_count, true);
	put_use(&d->use);
	putchar('}');
}

static void put_process(const struct view *v, const struct view_process *p)
{
	fputs("        {", stdout);
	put_number("pid", (uint64_t)p->pid, p->pid != 0);
	put_number("namespace_pid", p->own_pid, true);
	put_text("command", p->command);
	put_key("devices");
	putchar('[');
	for (unsigned i = 0; i < v->device_count; i++) {
		fputs(i ? ", {" : "{", stdout);
		put_text("uuid", v->devices[i].uuid);
		put_use(&p->use[i]);
		putchar('}');
	}
	fputs("]}", stdout);
}

static void put_view(const struct view *v)
{
	fputs("    {\n      ", stdout);
	put_text("name", v->name);
	put_text("region", v->region);
	printf("\"running\": %s,\n      \"devices\": [", v->is_running ? "true" : "false");
	for (unsigned i = 0; i < v->device_count; i++) {
		fputs(i ? ",\n" : "\n", stdout);
		put_device(&v->devices[i]);
	}
	fputs("],\n      \"processes\": [", stdout);
	for (unsigned i = 0; i < v->process_count; i++) {
		fputs(i ? ",\n" : "\n", stdout);
		put_process(v, &v->processes[i]);
	}
	fputs("]\n    }", stdout);
}

void show_json(const struct view *views, size_t count)
{
	fputs("{\n  \"slices\": [", stdout);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ",\n" : "\n", stdout);
		put_view(&views[i]);
	}
	fputs("]\n}\n", stdout);
}

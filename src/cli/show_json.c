/* SPDX-License-Identifier: Apache-2.0 */
/* Views as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/compute.h"
#include "cli/json.h"
#include "cli/show.h"

const char *const show_kind_names[] = {
#define X(id, name) name,
	CHARGE_KINDS(X)
#undef X
};

static void put_use(const struct view_use *use)
{
	json_number("used_bytes", use->used_bytes, true);
	json_key("kind_bytes");
	putchar('{');
	for (int k = 0; k < CHARGE_KIND_COUNT; k++)
		printf("%s\"%s\": %" PRIu64, k ? ", " : "", show_kind_names[k], use->kind_bytes[k]);
	putchar('}');
}

static void put_device(const struct view_device *d)
{
	putchar('{');
	json_text("uuid", d->uuid);
	json_number("index", (uint64_t)d->index, d->index >= 0);
	json_text("name", d->name);
	json_number("quota_bytes", d->quota_bytes, d->quota_bytes != 0);
	json_number(
		"pending_quota_bytes", d->share_quota_bytes, d->is_pending && d->share_quota_bytes);
	printf("\"is_share_in_force\": %s, ", d->is_pending ? "false" : "true");
	json_number("refusals", d->refusal_count, true);
	json_number("corrections", d->drift_count, true);
	json_number("evicted_bytes", d->evicted_bytes, true);
	compute_print_json(d);
	fputs(", ", stdout);
	put_use(&d->use);
	putchar('}');
}

void show_json_devices(const struct view *v)
{
	json_key("devices");
	putchar('[');
	for (unsigned i = 0; i < v->device_count; i++) {
		fputs(i ? ", " : "", stdout);
		put_device(&v->devices[i]);
	}
	putchar(']');
}

static void put_process(const struct view *v, const struct view_process *p)
{
	fputs("        {", stdout);
	json_number("pid", (uint64_t)p->pid, p->pid != 0);
	json_number("namespace_pid", p->own_pid, true);
	json_text("command", p->command);
	json_key("devices");
	putchar('[');
	for (unsigned i = 0; i < v->device_count; i++) {
		fputs(i ? ", {" : "{", stdout);
		json_text("uuid", v->devices[i].uuid);
		json_number("evicted_bytes", p->evicted_bytes[i], true);
		put_use(&p->use[i]);
		putchar('}');
	}
	fputs("]}", stdout);
}

static void put_view(const struct view *v)
{
	fputs("    {\n      ", stdout);
	json_text("name", v->name);
	json_text("user", v->user);
	json_text("region", v->region);
	json_text("mps", v->mps);
	printf("\"running\": %s, \"suspended\": %s,\n      ", v->is_running ? "true" : "false",
		v->is_suspended ? "true" : "false");
	show_json_devices(v);
	fputs(",\n      \"processes\": [", stdout);
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

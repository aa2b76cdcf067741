/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor's page shows. */
#include "monitor/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "web/series.h"

#define REFUSALS  32
#define KEY_BYTES (sizeof(((struct scan_container *)0)->uid) + SCAN_NAME_BYTES + 16)

/* The order of a slice's counters. */
enum { COUNT_BUSY, COUNT_CAP_WAIT, COUNT_TURN_WAIT, COUNT_BORROWED };

struct refusal {
	int64_t at_s; /* Unix time */
	char namespace[64], pod[254], container[64], device[UUID_TEXT_BYTES];
	uint64_t count;
};

struct page {
	struct series_list series;
	struct refusal refusals[REFUSALS];
	unsigned refusal_first, refusal_count;
};

/* A container's part of a device. */
struct part {
	const struct scan_container *container;
	unsigned at;
	const struct view_device *ours; /* NULL: another library's */
	struct slice_owner owner;
};

struct page *page_new(void)
{
	return calloc(1, sizeof(struct page));
}

void page_free(struct page *page)
{
	if (!page)
		return;
	series_clear(&page->series);
	free(page);
}

static const char *uuid_of(const struct part *part)
{
	return part->ours ? part->ours->uuid : part->container->figures.devices[part->at].uuid;
}

typedef void part_fn(void *context, const struct part *part);

static void each_part_of(
	const struct metrics_source *source, const struct scan *scan, part_fn *take, void *context)
{
	for (size_t i = 0; i < scan->count; i++) {
		const struct scan_container *c = &scan->list[i];
		unsigned count = c->view ? c->view->device_count : c->figures.device_count;
		struct part part = {.container = c};

		if (!metrics_find_pod(source, c, &part.owner))
			continue;
		for (part.at = 0; part.at < count; part.at++) {
			part.ours = c->view ? &c->view->devices[part.at] : NULL;
			if (*uuid_of(&part))
				take(context, &part);
		}
	}
}

static void each_part(const struct metrics_source *source, part_fn *take, void *context)
{
	each_part_of(source, source->scan, take, context);
	each_part_of(source, source->local, take, context);
}

static struct series *series_of(struct page *page, const struct part *part, bool *ret_is_new)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof(key), "%s_%s/%u", part->container->uid, part->container->name,
		part->at);
	return series_see(&page->series, key, ret_is_new);
}

static int busy_of(const struct part *part, const struct series *series)
{
	if (!part->ours)
		return part->container->figures.devices[part->at].busy_percent > 100
			       ? 1000
			       : (int)part->container->figures.devices[part->at].busy_percent * 10;
	if (!part->ours->compute.is_metered || !series || !series->has_rates)
		return SERIES_UNKNOWN;
	return (int)(series->rates[COUNT_BUSY] * 1000 + 0.5);
}

static uint64_t used_of(const struct part *part)
{
	return part->ours ? part->ours->use.used_bytes
			  : part->container->figures.devices[part->at].used_bytes;
}

static void note_refusal(struct page *page, const struct part *part, uint64_t count)
{
	unsigned at = (page->refusal_first + page->refusal_count) % REFUSALS;
	struct refusal *refusal = &page->refusals[at];

	if (page->refusal_count < REFUSALS)
		page->refusal_count++;
	else
		page->refusal_first = (page->refusal_first + 1) % REFUSALS;
	*refusal = (struct refusal){.at_s = time(NULL), .count = count};
	text_copy(refusal->namespace, sizeof(refusal->namespace), part->owner.namespace);
	text_copy(refusal->pod, sizeof(refusal->pod), part->owner.pod);
	text_copy(refusal->container, sizeof(refusal->container), part->owner.container);
	text_copy(refusal->device, sizeof(refusal->device), uuid_of(part));
}

struct sampling {
	struct page *page;
	uint64_t now_ns;
};

/* What was refused before the slice was first seen has no time. */
static void see_refusals(
	struct page *page, const struct part *part, struct series *series, bool is_new)
{
	uint64_t count = part->ours->refusal_count;

	if (!is_new && count > series->refusal_count)
		note_refusal(page, part, count - series->refusal_count);
	series->refusal_count = count;
}

static void sample_part(void *context, const struct part *part)
{
	const struct sampling *sampling = context;
	bool is_new;
	struct series *series = series_of(sampling->page, part, &is_new);

	if (!series)
		return;
	if (part->ours) {
		const struct view_compute *c = &part->ours->compute;
		const uint64_t counters[SERIES_COUNTERS] = {[COUNT_BUSY] = c->busy_ns,
			[COUNT_CAP_WAIT] = c->budget_wait_ns,
			[COUNT_TURN_WAIT] = c->turn_wait_ns,
			[COUNT_BORROWED] = c->lent_ns};

		series_count(series, sampling->now_ns, counters);
		see_refusals(sampling->page, part, series, is_new);
	}
	series_set(series, sampling->now_ns, used_of(part), busy_of(part, series));
}

void page_sample(struct page *page, const struct metrics_source *source)
{
	struct sampling sampling = {page, clock_now_ns()};

	series_begin(&page->series);
	for (unsigned i = 0; i < source->devices->count; i++) {
		const char *uuid = source->devices->device[i].uuid;
		struct metrics_device figures = metrics_read_device(source, uuid);
		struct series *series = series_see(&page->series, uuid, NULL);

		if (series && figures.is_known)
			series_set(series, sampling.now_ns, figures.memory_bytes,
				figures.has_busy ? (int)figures.busy_percent * 10 : SERIES_UNKNOWN);
	}
	each_part(source, sample_part, &sampling);
	series_end(&page->series, sampling.now_ns);
}

struct writer {
	FILE *out;
	struct page *page;
	const struct metrics_source *source;
	const char *uuid; /* the device whose slices are written */
	const char
		*told; /* of those that the driver does not list: the last UUID that is written */
	bool is_first, is_first_device;
};

static void write_number(FILE *out, const char *key, uint64_t value, bool is_known)
{
	if (is_known)
		fprintf(out, "\"%s\":%" PRIu64 ",", key, value);
	else
		fprintf(out, "\"%s\":null,", key);
}

static void write_rates(FILE *out, const struct part *part, const struct series *series)
{
	static const struct {
		const char *key;
		unsigned counter;
	} rates[] = {{"borrowed_permille", COUNT_BORROWED}, {"cap_wait_permille", COUNT_CAP_WAIT},
		{"turn_wait_permille", COUNT_TURN_WAIT}};
	int busy = busy_of(part, series);
	bool has_rates =
		part->ours && part->ours->compute.is_metered && series && series->has_rates;

	write_number(out, "busy_permille", (uint64_t)busy, busy != SERIES_UNKNOWN);
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		write_number(out, rates[i].key,
			has_rates ? (uint64_t)(series->rates[rates[i].counter] * 1000 + 0.5) : 0,
			has_rates);
}

static void write_ours(FILE *out, const struct part *part)
{
	const struct view_device *d = part->ours;
	const struct share_compute *granted = &d->compute.granted;

	write_number(out, "memory_quota_bytes", d->quota_bytes, d->quota_bytes);
	write_number(out, "memory_evicted_bytes", d->evicted_bytes, true);
	write_number(out, "sure_permille", granted->cores_permille, granted->cores_permille);
	write_number(out, "cap_permille", granted->cap_permille, granted->cap_permille);
	write_number(out, "refusals", d->refusal_count, true);
	write_number(out, "processes", part->container->view->process_count, true);
	fprintf(out, "\"is_pending\":%s,\"is_suspended\":%s,\"is_held_back\":%s}",
		d->is_pending ? "true" : "false",
		d->compute.state & REGION_COMPUTE_SUSPENDED ? "true" : "false",
		d->compute.state & REGION_COMPUTE_BLOCKED ? "true" : "false");
}

static void write_foreign(FILE *out, const struct part *part)
{
	const struct hami_figures *figures = &part->container->figures;
	uint64_t limit = figures->devices[part->at].limit_bytes;

	write_number(out, "memory_quota_bytes", limit, limit);
	write_number(out, "memory_evicted_bytes", 0, true);
	write_number(out, "sure_permille", 0, false);
	write_number(out, "cap_permille", 0, false);
	write_number(out, "refusals", 0, false);
	write_number(out, "processes", figures->process_count, true);
	fprintf(out, "\"is_pending\":false,\"is_suspended\":false,\"is_held_back\":%s}",
		figures->recent_launches < 0 ? "true" : "false");
}

static void write_part(void *context, const struct part *part)
{
	struct writer *w = context;
	const struct series *series;

	if (strcmp(uuid_of(part), w->uuid) != 0)
		return;
	series = series_of(w->page, part, NULL);
	fprintf(w->out, "%s{\"id\":%u,", w->is_first ? "" : ",", series ? series->id : 0);
	w->is_first = false;
	json_text_write_member(w->out, "namespace", part->owner.namespace);
	json_text_write_member(w->out, "pod", part->owner.pod);
	json_text_write_member(w->out, "container", part->owner.container);
	json_text_write_member(w->out, "user", part->ours ? part->container->view->user : "");
	fprintf(w->out, "\"vdevice\":%u,", part->at);
	write_number(w->out, "memory_used_bytes", used_of(part), true);
	write_rates(w->out, part, series);
	if (part->ours)
		write_ours(w->out, part);
	else
		write_foreign(w->out, part);
}

static void write_figures(struct writer *w, uint64_t total_bytes)
{
	struct metrics_device figures = metrics_read_device(w->source, w->uuid);
	const char *trouble = figures.is_known	? ""
			      : w->source->nvml ? "the driver does not answer for it"
						: "there is no driver";

	if (figures.is_known && figures.total_bytes)
		total_bytes = figures.total_bytes;
	fprintf(w->out, "\"is_healthy\":%s,", figures.is_known ? "true" : "false");
	json_text_write_member(w->out, "trouble", trouble);
	write_number(w->out, "memory_bytes", total_bytes, total_bytes);
	write_number(w->out, "memory_used_bytes", figures.memory_bytes, figures.is_known);
	write_number(w->out, "busy_permille", figures.busy_percent * 10,
		figures.is_known && figures.has_busy);
}

/* device: NULL where the driver's list has it not, as it is with instances. */
static void write_device(struct writer *w, const char *uuid, const struct inventory_device *device)
{
	const struct series *series = device ? series_see(&w->page->series, uuid, NULL) : NULL;

	fprintf(w->out, "%s{\"id\":%u,", w->is_first_device ? "" : ",", series ? series->id : 0);
	w->is_first_device = false;
	w->uuid = uuid;
	json_text_write_member(w->out, "uuid", uuid);
	write_number(w->out, "index", device ? device->index : 0, device);
	json_text_write_member(w->out, "model", device ? device->name : "");
	fprintf(w->out, "\"is_mig\":%s,", device && device->is_mig ? "true" : "false");
	write_figures(w, device ? device->total_bytes : 0);
	fputs("\"slices\":[", w->out);
	w->is_first = true;
	each_part(w->source, write_part, w);
	fputs("]}", w->out);
}

/* Which of the UUIDs that the driver does not list comes next, in the order of their letters. */
static void find_next(void *context, const struct part *part)
{
	const char *uuid = uuid_of(part);
	struct writer *w = context;

	if (inventory_lookup(w->source->devices, uuid) || (w->told && strcmp(uuid, w->told) <= 0))
		return;
	if (!w->uuid || strcmp(uuid, w->uuid) < 0)
		w->uuid = uuid;
}

static void write_unlisted(struct writer *w)
{
	for (w->told = NULL;; w->told = w->uuid) {
		w->uuid = NULL;
		each_part(w->source, find_next, w);
		if (!w->uuid)
			return;
		write_device(w, w->uuid, NULL);
	}
}

static void write_refusals(const struct page *page, FILE *out)
{
	for (unsigned i = page->refusal_count; i-- > 0;) {
		const struct refusal *refusal =
			&page->refusals[(page->refusal_first + i) % REFUSALS];

		putc('{', out);
		json_text_write_member(out, "namespace", refusal->namespace);
		json_text_write_member(out, "pod", refusal->pod);
		json_text_write_member(out, "container", refusal->container);
		json_text_write_member(out, "device", refusal->device);
		json_text_write_member(out, "why", "memory beyond its quota");
		fprintf(out, "\"at_s\":%" PRId64 ",\"count\":%" PRIu64 "}%s", refusal->at_s,
			refusal->count, i ? "," : "");
	}
}

void page_write(struct page *page, const struct metrics_source *source, FILE *out)
{
	struct writer w = {.out = out, .page = page, .source = source, .is_first_device = true};

	fprintf(out, "{\"version\":1,\"scope\":\"node\",\"program\":\"vgpu-monitor %s\",",
		VGPU_VERSION);
	fprintf(out, "\"now_s\":%" PRId64 ",\"trouble\":", (int64_t)time(NULL));
	json_text_write(out, source->pods && !pod_names_are_known(source->pods)
				     ? "the node's pods are not known yet"
				     : "");
	fputs(",\"nodes\":[{", out);
	json_text_write_member(out, "name", *source->node ? source->node : "this node");
	fputs("\"gpus\":[", out);
	for (unsigned i = 0; i < source->devices->count; i++)
		write_device(&w, source->devices->device[i].uuid, &source->devices->device[i]);
	write_unlisted(&w);
	fputs("]}],\"nodes_left_out\":0,\"pending\":[],\"quotas\":[],\"refusals\":[", out);
	write_refusals(page, out);
	fputs("]}\n", out);
}

void page_write_history(const struct page *page, FILE *out)
{
	series_write(&page->series, out);
}

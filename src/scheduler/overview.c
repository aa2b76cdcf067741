/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler's page shows. */
#include "scheduler/overview.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "scheduler/waiting.h"

#define MIB	      (INT64_C(1) << 20)
#define DEVICES_MOST  512 /* that are told */
#define REFUSALS_MOST 32
#define KEY_BYTES     384

struct device {
	const char *node;
	size_t index;
	const struct fit_device *its;
};

/* What a pod has of a device. Its texts are the books'. */
struct charge {
	const char *node, *uuid, *namespace, *name;
	struct rank_amount amount;
	bool is_bound;
};

/* All of both kinds, for as long as the books do not change. */
struct overview {
	struct device *devices;
	struct charge *charges;
	size_t device_count, charge_count;
	bool lacks_memory;
};

static void *grow(struct overview *o, void *list, size_t count, size_t size)
{
	void *grown = list;

	if ((count & (count - 1)) == 0)
		grown = reallocarray(list, count ? 2 * count : 1, size);
	o->lacks_memory |= !grown;
	return grown;
}

static void take_device(
	void *context, const char *node, size_t index, const struct fit_device *device)
{
	struct overview *o = context;
	struct device *list = grow(o, o->devices, o->device_count, sizeof(*list));

	if (!list)
		return;
	o->devices = list;
	list[o->device_count++] = (struct device){node, index, device};
}

static void take_charge(void *context, const struct books_pod *pod, const char *uuid,
	const struct rank_amount *amount)
{
	struct overview *o = context;
	struct charge *list = grow(o, o->charges, o->charge_count, sizeof(*list));

	if (!list)
		return;
	o->charges = list;
	list[o->charge_count++] = (struct charge){
		pod->node, uuid, pod->namespace, pod->name, *amount, pod->standing.is_bound};
}

static int compare_devices(const void *a, const void *b)
{
	const struct device *one = a, *other = b;
	int order = strcmp(one->node, other->node);

	return order ? order : (one->index > other->index) - (one->index < other->index);
}

static int compare_places(const struct charge *one, const char *node, const char *uuid)
{
	int order = strcmp(one->node, node);

	return order ? order : strcmp(one->uuid, uuid);
}

static int compare_charges(const void *a, const void *b)
{
	const struct charge *other = b;

	return compare_places(a, other->node, other->uuid);
}

static int collect(const struct extender *extender, struct overview *o)
{
	struct books *books = cluster_books(extender->cluster);

	*o = (struct overview){.device_count = 0};
	books_each_device(books, take_device, o);
	books_each_charge(books, take_charge, o);
	if (o->lacks_memory)
		return -ENOMEM;
	if (o->device_count)
		qsort(o->devices, o->device_count, sizeof(*o->devices), compare_devices);
	if (o->charge_count)
		qsort(o->charges, o->charge_count, sizeof(*o->charges), compare_charges);
	return 0;
}

static void clear(struct overview *o)
{
	free(o->devices);
	free(o->charges);
}

/* The first charge of the device, or where it would be. */
static size_t find_charge(const struct overview *o, const struct device *device)
{
	size_t low = 0, high = o->charge_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_places(&o->charges[middle], device->node, device->its->uuid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct series *series_of(struct series_list *list, const struct device *device)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof(key), "%.253s/%zu", device->node, device->index);
	return series_see(list, key, NULL);
}

void overview_sample(const struct extender *extender, struct series_list *series)
{
	uint64_t now_ns = clock_now_ns();
	struct overview o;

	if (!collect(extender, &o)) {
		series_begin(series);
		for (size_t i = 0; i < o.device_count && i < DEVICES_MOST; i++) {
			const struct rank_amount *used = &o.devices[i].its->used;
			struct series *its = series_of(series, &o.devices[i]);

			if (its)
				series_set(its, now_ns, (uint64_t)(used->memory_mib * MIB),
					(int)used->cores * 10);
		}
		series_end(series, now_ns);
	}
	clear(&o);
}

static void write_charge(FILE *out, const struct charge *charge)
{
	fputs("{\"id\":0,", out);
	json_text_write_member(out, "namespace", charge->namespace);
	json_text_write_member(out, "pod", charge->name ? charge->name : "");
	fprintf(out,
		"\"container\":\"\",\"vdevice\":0,\"memory_used_bytes\":null,\"memory_quota_"
		"bytes\":%" PRId64 ",",
		charge->amount.memory_mib * MIB);
	fputs("\"memory_evicted_bytes\":0,\"busy_permille\":null,\"sure_permille\":null,", out);
	if (charge->amount.cores)
		fprintf(out, "\"cap_permille\":%" PRId64 ",", charge->amount.cores * 10);
	else
		fputs("\"cap_permille\":null,", out);
	fprintf(out, "\"is_promised\":%s}", charge->is_bound ? "false" : "true");
}

static void write_charges(FILE *out, const struct overview *o, const struct device *device)
{
	size_t first = find_charge(o, device);

	for (size_t i = first; i < o->charge_count &&
			       !compare_places(&o->charges[i], device->node, device->its->uuid);
		i++) {
		if (i > first)
			putc(',', out);
		write_charge(out, &o->charges[i]);
	}
}

static void write_device(
	FILE *out, const struct overview *o, const struct device *device, struct series_list *list)
{
	const struct series *series = series_of(list, device);
	const struct fit_device *its = device->its;

	fprintf(out, "{\"id\":%u,\"index\":%zu,", series ? series->id : 0, device->index);
	json_text_write_member(out, "uuid", its->uuid);
	json_text_write_member(out, "model", its->model);
	fprintf(out, "\"is_mig\":%s,\"is_healthy\":%s,", its->is_mig ? "true" : "false",
		its->is_healthy ? "true" : "false");
	json_text_write_member(out, "trouble",
		!its->is_healthy   ? "its device plugin says that it is not healthy"
		: its->is_cordoned ? "cordoned"
				   : "");
	fprintf(out, "\"memory_bytes\":%" PRId64 ",\"memory_used_bytes\":null,",
		its->all.memory_mib * MIB);
	fputs("\"busy_permille\":null,\"slices\":[", out);
	write_charges(out, o, device);
	fputs("]}", out);
}

/* Whole nodes alone: what does not fit is counted. */
static void write_nodes(FILE *out, const struct overview *o, struct series_list *list)
{
	size_t i = 0, left_out = 0, end;
	bool is_first = true;

	for (; i < o->device_count; i = end) {
		const char *node = o->devices[i].node;

		for (end = i; end < o->device_count && !strcmp(o->devices[end].node, node); end++)
			;
		if (end > DEVICES_MOST) {
			left_out++;
			continue;
		}
		fputs(is_first ? "{" : ",{", out);
		is_first = false;
		json_text_write_member(out, "name", node);
		fputs("\"gpus\":[", out);
		for (size_t k = i; k < end; k++) {
			if (k > i)
				putc(',', out);
			write_device(out, o, &o->devices[k], list);
		}
		fputs("]}", out);
	}
	fprintf(out, "],\"nodes_left_out\":%zu,", left_out);
}

static int compare_waiting(const void *a, const void *b)
{
	const struct waiting_pod *one = *(const struct waiting_pod *const *)a,
				 *other = *(const struct waiting_pod *const *)b;

	return (one->told_s < other->told_s) - (one->told_s > other->told_s);
}

static size_t sort_waiting(const struct waiting *waiting, const struct waiting_pod **ret_pods)
{
	size_t count = 0;

	for (size_t i = 0; i < WAITING_MOST; i++)
		if (waiting->pods[i].told_s)
			ret_pods[count++] = &waiting->pods[i];
	qsort(ret_pods, count, sizeof(*ret_pods), compare_waiting);
	return count;
}

static void write_reasons(FILE *out, const struct waiting_pod *pod)
{
	char words[FILTER_WORDS_BYTES];

	for (unsigned i = 0; i < pod->reason_count; i++) {
		filter_explain(&pod->reasons[i].reason, words);
		fputs(i ? ",{" : "{", out);
		json_text_write_member(out, "words", words);
		fprintf(out, "\"nodes\":%u}", pod->reasons[i].nodes);
	}
	if (pod->other_nodes)
		fprintf(out, ",{\"words\":\"other reasons\",\"nodes\":%u}", pod->other_nodes);
}

static void write_pending(FILE *out, const struct waiting_pod *pod, bool is_first)
{
	fputs(is_first ? "{" : ",{", out);
	json_text_write_member(out, "uid", pod->uid);
	json_text_write_member(out, "namespace", pod->namespace);
	json_text_write_member(out, "pod", pod->name);
	fprintf(out,
		"\"since_s\":%" PRId64 ",\"told_s\":%" PRId64 ",\"devices\":%" PRId64
		",\"memory_bytes\":%" PRId64 ",\"cores_permille\":%" PRId64 ",\"reasons\":[",
		pod->since_s, pod->told_s, pod->devices, pod->memory_mib * MIB, pod->cores * 10);
	write_reasons(out, pod);
	fputs("]}", out);
}

static void write_refusal(FILE *out, const struct waiting_pod *pod)
{
	char words[FILTER_WORDS_BYTES] = "no node was asked for";

	if (pod->reason_count)
		filter_explain(&pod->reasons[0].reason, words);
	json_text_write_member(out, "namespace", pod->namespace);
	json_text_write_member(out, "pod", pod->name);
	json_text_write_member(out, "why", words);
	fprintf(out, "\"container\":\"\",\"device\":\"\",\"at_s\":%" PRId64 ",\"count\":%u}",
		pod->told_s, pod->count);
}

static void write_waiting(FILE *out, const struct waiting *waiting, int64_t now_s)
{
	const struct waiting_pod *pods[WAITING_MOST];
	size_t count = sort_waiting(waiting, pods);
	bool is_first = true;

	fputs("\"pending\":[", out);
	for (size_t i = 0; i < count; i++)
		if (waiting_is_so(pods[i], now_s)) {
			write_pending(out, pods[i], is_first);
			is_first = false;
		}
	fputs("],\"refusals\":[", out);
	for (size_t i = 0; i < count && i < REFUSALS_MOST; i++) {
		fputs(i ? ",{" : "{", out);
		write_refusal(out, pods[i]);
	}
	fputs("],", out);
}

struct quota_writer {
	FILE *out;
	const struct demand_rules *rules;
	bool is_first;
};

static void write_quota(struct quota_writer *w, const char *namespace, const char *resource,
	const char *unit, int64_t used, int64_t limit)
{
	fputs(w->is_first ? "{" : ",{", w->out);
	w->is_first = false;
	json_text_write_member(w->out, "namespace", namespace);
	json_text_write_member(w->out, "resource", resource);
	fprintf(w->out, "\"unit\":\"%s\",\"used\":%" PRId64 ",\"limit\":%" PRId64 "}", unit, used,
		limit);
}

static void take_quota(void *context, const char *namespace, const struct fit_room *limit,
	const struct fit_room *used)
{
	struct quota_writer *w = context;

	if (limit->memory_mib < INT64_MAX / MIB)
		write_quota(w, namespace, w->rules->memory, "bytes", used->memory_mib * MIB,
			limit->memory_mib * MIB);
	if (limit->cores < INT64_MAX / 10)
		write_quota(w, namespace, w->rules->cores, "permille", used->cores * 10,
			limit->cores * 10);
}

static const char *trouble(const struct extender *extender)
{
	if (!cluster_is_known(extender->cluster))
		return "the cluster is not known yet";
	return extender->leads
		       ? ""
		       : "this replica does not lead: which pods wait says the one that does";
}

int overview_write(const struct extender *extender, struct series_list *series, FILE *out)
{
	struct quota_writer quotas = {out, &extender->settings->rules.demand, true};
	int64_t now_s = time(NULL);
	struct overview o;
	int r = collect(extender, &o);

	if (!r) {
		fprintf(out,
			"{\"version\":1,\"scope\":\"cluster\",\"program\":\"vgpu-scheduler %s\",",
			VGPU_VERSION);
		fprintf(out, "\"now_s\":%" PRId64 ",", now_s);
		json_text_write_member(out, "trouble", trouble(extender));
		fputs("\"nodes\":[", out);
		write_nodes(out, &o, series);
		write_waiting(out, extender->waiting, now_s);
		fputs("\"quotas\":[", out);
		books_each_quota(cluster_books(extender->cluster), take_quota, &quotas);
		fputs("]}\n", out);
	}
	clear(&o);
	return r;
}

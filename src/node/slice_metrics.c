/* SPDX-License-Identifier: Apache-2.0 */
/* What slices use and were granted, as metrics. */
#include "node/slice_metrics.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/exposition.h"

#define S_OF_NS(ns) ((double)(ns) / 1e9)

/* A sample's value; false where there is none. */
typedef bool value_fn(const struct view *v, const struct view_device *d, double *ret_value);

#define VALUE(function, is_there, value)                                                           \
	static bool function(const struct view *v, const struct view_device *d, double *ret_value) \
	{                                                                                          \
		(void)v, (void)d;                                                                  \
		*ret_value = (value);                                                              \
		return (is_there);                                                                 \
	}

VALUE(memory_used, true, (double)d->use.used_bytes)
VALUE(memory_quota, d->quota_bytes != 0, (double)d->quota_bytes)
VALUE(memory_evicted, true, (double)d->evicted_bytes)
VALUE(refusals, true, (double)d->refusal_count)
VALUE(corrections, true, (double)d->drift_count)
VALUE(busy, d->compute.is_metered, S_OF_NS(d->compute.busy_ns))
VALUE(lent, d->compute.is_metered, S_OF_NS(d->compute.lent_ns))
VALUE(budget_wait, d->compute.is_metered, S_OF_NS(d->compute.budget_wait_ns))
VALUE(turn_wait, d->compute.is_metered, S_OF_NS(d->compute.turn_wait_ns))
VALUE(launches, d->compute.is_metered, (double)d->compute.launches)
VALUE(sure_part, d->compute.granted.cores_permille != 0, d->compute.granted.cores_permille / 1e3)
VALUE(cap_part, d->compute.granted.cap_permille != 0, d->compute.granted.cap_permille / 1e3)
VALUE(is_pending, true, d->is_pending)
VALUE(is_suspended, true, (d->compute.state & REGION_COMPUTE_SUSPENDED) != 0)
VALUE(is_blocked, true, (d->compute.state & REGION_COMPUTE_BLOCKED) != 0)
VALUE(processes, true, v->process_count)

#define METRIC EXPOSITION_FAMILY
#define LABELS EXPOSITION_LABELS
#include "node/slice_metrics.def"

static const struct {
	const struct exposition_family *family;
	value_fn *value;
} families[] = {
	{&memory_used_family, memory_used},
	{&memory_quota_family, memory_quota},
	{&memory_evicted_family, memory_evicted},
	{&refusals_family, refusals},
	{&corrections_family, corrections},
	{&busy_family, busy},
	{&lent_family, lent},
	{&budget_wait_family, budget_wait},
	{&turn_wait_family, turn_wait},
	{&launches_family, launches},
	{&sure_part_family, sure_part},
	{&cap_part_family, cap_part},
	{&is_pending_family, is_pending},
	{&is_suspended_family, is_suspended},
	{&is_blocked_family, is_blocked},
	{&processes_family, processes},
};

static const char *const kind_labels[] = {
#define X(id, name) ",kind=\"" name "\"",
	CHARGE_KINDS(X)
#undef X
};

/* A device of a slice. The labels are the same of all its samples, and are written once. */
struct part {
	const struct view *view;
	const struct view_device *device;
	size_t labels_at;
};

struct all {
	struct part *parts;
	size_t count;
	char *labels; /* of each, with its end */
};

/* The region's path and the place in it make a sample the only one with its labels, whatever names say. */
static void write_labels(
	FILE *out, const struct view *v, const struct slice_owner *owner, unsigned at)
{
	const struct view_device *d = &v->devices[at];
	const struct exposition_label labels[] = {{"slice", v->name}, {"user", v->user},
		{"region", v->region}, {"vdevice_index", EXPOSITION_NUMBER(at)},
		{"device_index", d->index < 0 ? "" : EXPOSITION_NUMBER(d->index)},
		{"device_uuid", d->uuid}, {"namespace", owner->namespace}, {"pod", owner->pod},
		{"container", owner->container}};

	exposition_write_labels(out, labels, ARRAY_SIZE(labels));
	putc('\0', out);
}

static void list_parts(FILE *labels, const struct view *const *views,
	const struct slice_owner *owners, size_t count, struct all *all)
{
	static const struct slice_owner nobody = {"", "", ""};

	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < views[i]->device_count; k++) {
			all->parts[all->count++] = (struct part){
				views[i], &views[i]->devices[k], (size_t)ftell(labels)};
			write_labels(labels, views[i], owners ? &owners[i] : &nobody, k);
		}
}

static void write_family(FILE *out, const struct exposition_family *family, value_fn *value_of,
	const struct all *all)
{
	double value;

	exposition_write_head(out, family);
	for (const struct part *p = all->parts; p < all->parts + all->count; p++)
		if (value_of(p->view, p->device, &value))
			exposition_write_with(
				out, family->name, all->labels + p->labels_at, "", value);
}

static void write_kinds(FILE *out, const struct all *all)
{
	exposition_write_head(out, &kinds_family);
	for (const struct part *p = all->parts; p < all->parts + all->count; p++)
		for (int kind = 0; kind < CHARGE_KIND_COUNT; kind++)
			exposition_write_with(out, kinds_family.name, all->labels + p->labels_at,
				kind_labels[kind], (double)p->device->use.kind_bytes[kind]);
}

static int read_all(const struct view *const *views, const struct slice_owner *owners, size_t count,
	struct all *ret_all)
{
	size_t most = 0, bytes;
	FILE *labels = open_memstream(&ret_all->labels, &bytes);

	for (size_t i = 0; i < count; i++)
		most += views[i]->device_count;
	ret_all->parts = calloc(most + 1, sizeof(*ret_all->parts));
	if (labels && ret_all->parts)
		list_parts(labels, views, owners, count, ret_all);
	return !labels || fclose(labels) || !ret_all->parts ? -ENOMEM : 0;
}

void slice_metrics_write(
	FILE *out, const struct view *const *views, const struct slice_owner *owners, size_t count)
{
	struct all all = {.count = 0};

	if (read_all(views, owners, count, &all))
		all.count = 0; /* families without samples */
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		write_family(out, families[i].family, families[i].value, &all);
	write_kinds(out, &all);
	free(all.parts);
	free(all.labels);
}

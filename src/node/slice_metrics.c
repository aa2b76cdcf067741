/* SPDX-License-Identifier: Apache-2.0 */
/* What slices use and were granted, as metrics. */
#include "node/slice_metrics.h"

#include <stdint.h>

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

static const char *const kind_names[] = {
#define X(id, name) name,
	CHARGE_KINDS(X)
#undef X
};

enum { LABELS = 9 };

struct labels {
	char at[16], index[16];
	struct exposition_label list[LABELS + 1]; /* and a place for one more */
};

struct all {
	const struct view *const *views;
	const struct slice_owner *owners;
	size_t count;
};

/* The region's path and the place in it make a sample the only one with its labels, whatever names say. */
static void label(const struct all *all, size_t i, unsigned at, struct labels *ret_labels)
{
	static const struct slice_owner nobody = {"", "", ""};
	const struct slice_owner *owner = all->owners ? &all->owners[i] : &nobody;
	const struct view *v = all->views[i];
	const struct view_device *d = &v->devices[at];

	snprintf(ret_labels->at, sizeof(ret_labels->at), "%u", at);
	snprintf(ret_labels->index, sizeof(ret_labels->index), "%d", d->index);
	ret_labels->list[0] = (struct exposition_label){"slice", v->name};
	ret_labels->list[1] = (struct exposition_label){"user", v->user};
	ret_labels->list[2] = (struct exposition_label){"region", v->region};
	ret_labels->list[3] = (struct exposition_label){"vdevice_index", ret_labels->at};
	ret_labels->list[4] =
		(struct exposition_label){"device_index", d->index < 0 ? "" : ret_labels->index};
	ret_labels->list[5] = (struct exposition_label){"device_uuid", d->uuid};
	ret_labels->list[6] = (struct exposition_label){"namespace", owner->namespace};
	ret_labels->list[7] = (struct exposition_label){"pod", owner->pod};
	ret_labels->list[8] = (struct exposition_label){"container", owner->container};
}

static void write_family(FILE *out, const struct exposition_family *family, value_fn *value_of,
	const struct all *all)
{
	struct labels labels;
	double value;

	exposition_write_head(out, family);
	for (size_t i = 0; i < all->count; i++)
		for (unsigned k = 0; k < all->views[i]->device_count; k++) {
			if (!value_of(all->views[i], &all->views[i]->devices[k], &value))
				continue;
			label(all, i, k, &labels);
			exposition_write(out, family->name, labels.list, LABELS, value);
		}
}

static void write_kinds(FILE *out, const struct all *all)
{
	struct labels labels;

	exposition_write_head(out, &kinds_family);
	for (size_t i = 0; i < all->count; i++)
		for (unsigned k = 0; k < all->views[i]->device_count; k++) {
			const struct view_device *d = &all->views[i]->devices[k];

			label(all, i, k, &labels);
			for (int kind = 0; kind < CHARGE_KIND_COUNT; kind++) {
				labels.list[LABELS] =
					(struct exposition_label){"kind", kind_names[kind]};
				exposition_write(out, kinds_family.name, labels.list, LABELS + 1,
					(double)d->use.kind_bytes[kind]);
			}
		}
}

void slice_metrics_write(
	FILE *out, const struct view *const *views, const struct slice_owner *owners, size_t count)
{
	const struct all all = {views, owners, count};

	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		write_family(out, families[i].family, families[i].value, &all);
	write_kinds(out, &all);
}

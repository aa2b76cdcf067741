/* SPDX-License-Identifier: Apache-2.0 */
/* Calls every part at a turning point. */
#include "tenant/slice/parts.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(const struct part *) table;
static _Atomic unsigned table_count;

void parts_hand_down(const struct part *parts, unsigned count)
{
	/* relaxed: the hook that hands down publishes both by its release (hooks/parts.c) */
	atomic_store_explicit(&table, parts, memory_order_relaxed);
	atomic_store_explicit(&table_count, count, memory_order_relaxed);
}

/* clang-format off */
#define FOR_EACH(part)                                                                             \
	for (const struct part *part = atomic_load_explicit(&table, memory_order_relaxed),         \
		*end_ = part + atomic_load_explicit(&table_count, memory_order_relaxed); part < end_; part++)
/* clang-format on */

void parts_reset_after_fork(void)
{
	FOR_EACH(part)
	if (part->reset_after_fork)
		part->reset_after_fork();
}

void parts_context_comes(struct device *device)
{
	FOR_EACH(part)
	if (part->context_comes)
		part->context_comes(device);
}

void parts_context_made(CUcontext context)
{
	FOR_EACH(part)
	if (part->context_made)
		part->context_made(context);
}

void parts_context_ends(CUcontext context)
{
	FOR_EACH(part)
	if (part->context_ends)
		part->context_ends(context);
}

void parts_context_ended(struct device *device, CUcontext context)
{
	FOR_EACH(part)
	if (part->context_ended)
		part->context_ended(device, context);
}

void parts_life_ended(struct device *device, uint64_t life)
{
	FOR_EACH(part)
	if (part->life_ended)
		part->life_ended(device, life);
}

void parts_object_ended(CUmemGenericAllocationHandle object, uint32_t serial)
{
	FOR_EACH(part)
	if (part->object_ended)
		part->object_ended(object, serial);
}

void parts_quota_comes(struct device *device)
{
	FOR_EACH(part)
	if (part->quota_comes)
		part->quota_comes(device);
}

void parts_quota_came(struct device *device)
{
	FOR_EACH(part)
	if (part->quota_came)
		part->quota_came(device);
}

void parts_compare(struct device *device, enum parts_when when)
{
	FOR_EACH(part)
	if (part->compare)
		part->compare(device, when);
}

void parts_collect(struct device *device)
{
	FOR_EACH(part)
	if (part->collect)
		part->collect(device);
}

void parts_trim(struct device *device)
{
	FOR_EACH(part)
	if (part->trim)
		part->trim(device);
}

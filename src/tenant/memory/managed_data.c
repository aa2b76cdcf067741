/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of modules and libraries.
 *
 * Two tables with the same keys, so that an entry is found by its image and by its context. Whoever
 * takes it out of the first one gives back the charge.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/managed_data.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/contexts.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/table.h"

static struct table by_image;	/* a: module or library, b: units << 8 | ordinal */
static struct table by_context; /* a: context */

static CUcontext current_context(void)
{
	CUcontext context = NULL;

	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	return contexts_owner(context);
}

static uint64_t key_of(const void *owner, CUcontext context)
{
	uint64_t key = hash_u64(hash_u64((uintptr_t)owner) + (uintptr_t)context);

	return key ? key : 1;
}

CUresult managed_data_begin(uint64_t bytes, struct charge *ret_charge)
{
	*ret_charge = (struct charge)CHARGE_NULL;
	return bytes ? charge_reserve_current(bytes, CHARGE_MANAGED, ret_charge) : CUDA_SUCCESS;
}

bool managed_data_keep(const void *owner, struct charge *charge)
{
	CUcontext context = current_context();
	struct table_entry image = {.key = key_of(owner, context), .a = (uintptr_t)owner};
	struct table_entry place = {.key = image.key, .a = (uintptr_t)context};

	if (!charge->device)
		return true;
	image.b = (uint64_t)charge->units << 8 | (uint64_t)charge->device->ordinal;
	if (table_get(&by_image, image.key, NULL) == 0) {
		charge_undo(charge);
		return true;
	}
	if (table_put(&by_context, place) < 0 || table_put(&by_image, image) < 0) {
		log_error("no memory for our own tables, so an image is refused");
		charge_undo(charge);
		return false;
	}
	FAULT("managed data: entered");
	charge_take(charge);
	return true;
}

static void give_back(const struct table_entry *image)
{
	FAULT("managed data: taken out");
	charge_give_back(state_device((CUdevice)(image->b & 0xff)),
		(image->b >> 8) * REGION_UNIT_BYTES, CHARGE_MANAGED);
}

void managed_data_unloaded(const void *owner)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry image;

	while (table_take_by_a(&by_image, (uintptr_t)owner, &cursor, &image) == 0) {
		if (table_take(&by_context, image.key, NULL) != 0)
			log_debug("an image and its context went at the same time");
		give_back(&image);
	}
}

void managed_data_context_ended(struct device *device, CUcontext context)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry place, image;

	while (table_take_by_a(&by_context, (uintptr_t)context, &cursor, &place) == 0)
		if (table_take(&by_image, place.key, &image) == 0)
			give_back(&image);
}

void managed_data_reset_after_fork(void)
{
	table_forget(&by_image);
	table_forget(&by_context);
}

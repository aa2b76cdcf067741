/* SPDX-License-Identifier: Apache-2.0 */
/* How many calls use what is unloaded as one. */
#include "tenant/memory/code_uses.h"

#include "tenant/memory/table.h"

static struct table owners; /* key: the owner; a: calls under way; b: 1 while it is unloaded */

static __thread uint32_t own_count; /* of this thread's */

CUresult code_uses_begin(uint64_t owner)
{
	TABLE_SCOPE place = table_enter(&owners, owner, true);

	if (!place.entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (place.entry->b)
		return CUDA_ERROR_NOT_READY;
	place.entry->a++;
	own_count++;
	return CUDA_SUCCESS;
}

static void remove_unused(struct table_place *place)
{
	if (!place->entry->a && !place->entry->b)
		table_remove(place);
}

void code_uses_end(uint64_t owner)
{
	TABLE_SCOPE place = table_enter(&owners, owner, false);

	if (own_count)
		own_count--;
	/* A child of fork() has none any more. */
	if (!place.entry || !place.entry->a)
		return;
	place.entry->a--;
	remove_unused(&place);
}

bool code_uses_are_any(uint64_t owner)
{
	struct table_entry entry;

	return table_get(&owners, owner, &entry) == 0 && entry.a;
}

bool code_uses_are_own(void)
{
	return own_count;
}

static CUresult begin_unload(uint64_t owner, bool may_be_used)
{
	TABLE_SCOPE place = table_enter(&owners, owner, true);

	if (!place.entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if ((place.entry->a && !may_be_used) || place.entry->b)
		return CUDA_ERROR_NOT_READY;
	place.entry->b = 1;
	return CUDA_SUCCESS;
}

CUresult code_uses_unload_begin(uint64_t owner)
{
	return begin_unload(owner, false);
}

bool code_uses_close(uint64_t owner)
{
	return begin_unload(owner, true) == CUDA_SUCCESS;
}

void code_uses_unload_end(uint64_t owner)
{
	TABLE_SCOPE place = table_enter(&owners, owner, false);

	if (!place.entry)
		return;
	place.entry->b = 0;
	remove_unused(&place);
}

void code_uses_reset_after_fork(void)
{
	table_forget(&owners);
	own_count = 0;
}

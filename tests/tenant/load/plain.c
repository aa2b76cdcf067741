/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: plain, pitched and managed memory. */
#include "tests/tenant/load/load.h"

static CUresult take_plain(struct load *l, struct load_held *ret_held)
{
	return l->client->cu.cuMemAlloc_v2(&ret_held->value, load_random_bytes(l));
}

static CUresult take_pitched(struct load *l, struct load_held *ret_held)
{
	size_t pitch, width = 1 + load_below(l, 4096), height = 1 + load_below(l, 4096);

	return l->client->cu.cuMemAllocPitch_v2(&ret_held->value, &pitch, width, height, 4);
}

static CUresult take_managed(struct load *l, struct load_held *ret_held)
{
	return l->client->cu.cuMemAllocManaged(
		&ret_held->value, load_random_bytes(l), CU_MEM_ATTACH_GLOBAL);
}

static CUresult give(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuMemFree_v2(held->value);
}

const struct load_family load_plain = {.bears_misuse = true,
	.weight = 448,
	.ends_with_context = true,
	.take = take_plain,
	.give = give};
const struct load_family load_pitched = {.bears_misuse = true,
	.weight = 96,
	.ends_with_context = true,
	.take = take_pitched,
	.give = give};
const struct load_family load_managed = {.bears_misuse = true,
	.weight = 64,
	.ends_with_context = true,
	.take = take_managed,
	.give = give};

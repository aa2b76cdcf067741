/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random load. Everything taken stands in one table with its family, which knows how it is given
 * back, so that nothing can be forgotten at the end.
 */
#include "tests/tenant/load/load.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS_MOST 1024

static const struct load_family *const families[LOAD_FAMILIES] = {
#define FAMILY(name) [LOAD_##name] = &load_##name,
#include "tests/tenant/load/family.def"
};

static const char *const names[LOAD_FAMILIES] = {
#define FAMILY(name) [LOAD_##name] = #name,
#include "tests/tenant/load/family.def"
};

/* xorshift64*: the same numbers everywhere for the same seed */
uint64_t load_random(struct load *l)
{
	l->state ^= l->state >> 12;
	l->state ^= l->state << 25;
	l->state ^= l->state >> 27;
	return l->state * UINT64_C(2685821657736338717);
}

uint64_t load_below(struct load *l, uint64_t bound)
{
	return (load_random(l) >> 8) % bound;
}

uint64_t load_random_bytes(struct load *l)
{
	static const uint64_t largest[] = {
		65536, LOAD_MIB, 2 * LOAD_MIB, 16 * LOAD_MIB, 96 * LOAD_MIB};

	return 1 + load_below(l, largest[load_below(l, 5)]);
}

bool load_uses(enum load_family_name name)
{
	const char *symbol = families[name]->symbol;

	return !symbol || client_is_replaced(symbol) == client_is_replaced("cuMemAlloc_v2");
}

const char *load_family_text(enum load_family_name name)
{
	return names[name];
}

static bool may_choose(const struct load *l, unsigned name)
{
	return load_uses((enum load_family_name)name) &&
	       (l->is_alone || !families[name]->needs_solitude) &&
	       (l->is_alone || l->ends_primary || !families[name]->stays_with_primary) &&
	       (l->is_hostile || !families[name]->is_hostile) &&
	       (l->ends_process || !families[name]->stays_with_process);
}

/* By weight, among those that can be had here. */
static enum load_family_name choose(struct load *l)
{
	uint64_t all = 0, at;
	unsigned name = 0;

	for (unsigned i = 0; i < LOAD_FAMILIES; i++)
		all += l->weight[i];
	at = load_below(l, all);
	while (at >= l->weight[name])
		at -= l->weight[name++];
	return (enum load_family_name)name;
}

CUresult load_take(struct load *l, enum load_family_name name, unsigned number)
{
	struct load_held held = {.number = number};
	CUresult r = families[name]->take(l, &held);

	if (r == CUDA_SUCCESS && held.value != 0) {
		held.family = families[name];
		l->held[l->held_count++] = held;
	}
	return r;
}

static CUresult give_at(struct load *l, unsigned at)
{
	struct load_held held = l->held[at];

	l->held[at] = l->held[--l->held_count];
	return held.family->give(l, &held);
}

static CUresult step(struct load *l, struct load_count *count)
{
	enum load_family_name name = choose(l);

	if (l->held_count == LOAD_HELD_MOST || (l->held_count > 0 && load_below(l, 2))) {
		unsigned at = (unsigned)load_below(l, l->held_count);

		for (unsigned i = 0; i < LOAD_FAMILIES; i++)
			if (families[i] == l->held[at].family)
				count->family = names[i];
		return give_at(l, at);
	}
	count->family = names[name];
	return load_take(l, name, 0);
}

static _Atomic unsigned char is_open[DESCRIPTORS_MOST];

CUdeviceptr load_keep_descriptor(int fd)
{
	if (fd >= 0 && fd < DESCRIPTORS_MOST)
		atomic_store(&is_open[fd], 1);
	return (CUdeviceptr)fd;
}

void load_close_descriptor(CUdeviceptr kept)
{
	if (kept < DESCRIPTORS_MOST && atomic_exchange(&is_open[kept], 0))
		close((int)kept);
}

CUresult load_leave_context(struct load *l)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = l->held_count; i > 0 && r == CUDA_SUCCESS; i--)
		if (!l->held[i - 1].family->ends_with_context)
			r = give_at(l, i - 1);
	if (r == CUDA_SUCCESS)
		r = l->client->cu.cuCtxSynchronize();
	if (r == CUDA_SUCCESS)
		l->held_count = 0;
	return r;
}

CUresult load_begin(struct load *l)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; i < LOAD_FAMILIES && r == CUDA_SUCCESS; i++) {
		l->weight[i] = may_choose(l, i) ? families[i]->weight : 0;
		if (l->weight[i] > 0 && families[i]->begin)
			r = families[i]->begin(l);
		if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			l->weight[i] = 0;
			r = CUDA_SUCCESS;
		}
	}
	return r;
}

CUresult load_end(struct load *l)
{
	CUresult r = CUDA_SUCCESS;

	while (l->held_count > 0 && r == CUDA_SUCCESS)
		r = give_at(l, l->held_count - 1);
	if (r == CUDA_SUCCESS)
		r = l->client->cu.cuCtxSynchronize();
	for (unsigned i = 0; i < LOAD_FAMILIES && r == CUDA_SUCCESS; i++)
		if (l->weight[i] > 0 && families[i]->end)
			r = families[i]->end(l);
	return r;
}

int load_run(struct client *client, uint64_t seed, uint64_t operations, bool is_alone,
	struct load_count *ret_count)
{
	struct load l = {.client = client, .is_alone = is_alone, .state = seed * 2 + 1};
	CUresult r;

	*ret_count = (struct load_count){.family = "begin"};
	r = client->cu.cuCtxGetCurrent(&l.context);
	if (r == CUDA_SUCCESS)
		r = load_begin(&l);
	while (ret_count->done < operations && r == CUDA_SUCCESS) {
		r = step(&l, ret_count);
		ret_count->done++;
		if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			ret_count->refused++;
			r = CUDA_SUCCESS;
		}
	}
	if (r == CUDA_SUCCESS) {
		ret_count->family = "end";
		r = load_end(&l);
	}
	return (int)r;
}

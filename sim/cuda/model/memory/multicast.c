/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects. */
#include "sim/cuda/model/memory/multicast.h"

#include <stdbool.h>
#include <stdlib.h>

struct binding {
	struct multicast_place place;
	struct handle *memory;
	struct binding *next;
};

struct multicast {
	unsigned int most;  /* devices */
	unsigned int count; /* that were added */
	uint64_t devices;   /* a bit for each that was */
	struct binding *bindings;
};

struct multicast *multicast_new(unsigned int devices)
{
	struct multicast *multicast = calloc(1, sizeof(*multicast));

	if (multicast)
		multicast->most = devices;
	return multicast;
}

static struct handle *end_binding(struct binding **at)
{
	struct binding *binding = *at;
	struct handle *memory = binding->memory;

	*at = binding->next;
	free(binding);
	return memory;
}

struct handle *multicast_end(struct multicast *multicast)
{
	if (multicast->bindings)
		return end_binding(&multicast->bindings);
	free(multicast);
	return NULL;
}

CUresult multicast_add_device(struct multicast *multicast, CUdevice device)
{
	uint64_t bit = UINT64_C(1) << device;

	if (multicast->devices & bit || multicast->count == multicast->most)
		return CUDA_ERROR_INVALID_VALUE;
	multicast->devices |= bit;
	multicast->count++;
	return CUDA_SUCCESS;
}

static bool overlap(const struct multicast_place *a, const struct multicast_place *b)
{
	return a->device == b->device && a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
}

CUresult multicast_bind(
	struct multicast *multicast, struct multicast_place place, struct handle *memory)
{
	struct binding *binding;

	/* As documented: not before all devices were added. */
	if (multicast->count < multicast->most || !(multicast->devices >> place.device & 1))
		return CUDA_ERROR_INVALID_VALUE;
	for (const struct binding *b = multicast->bindings; b; b = b->next)
		if (overlap(&b->place, &place))
			return CUDA_ERROR_INVALID_VALUE;
	binding = calloc(1, sizeof(*binding));
	if (!binding)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*binding = (struct binding){place, memory, multicast->bindings};
	multicast->bindings = binding;
	return CUDA_SUCCESS;
}

struct handle *multicast_unbind(struct multicast *multicast, struct multicast_place place)
{
	for (struct binding **at = &multicast->bindings; *at; at = &(*at)->next) {
		const struct multicast_place *p = &(*at)->place;

		if (p->device != place.device || p->offset != place.offset || p->size != place.size)
			continue;
		return end_binding(at);
	}
	return NULL;
}

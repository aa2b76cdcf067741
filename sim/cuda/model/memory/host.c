/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the driver allocated or was told of. */
#include "sim/cuda/model/memory/host.h"

#include <stdint.h>
#include <stdlib.h>

static struct host_range *ranges; /* under memory_lock */

struct host_range *host_find(uintptr_t address)
{
	struct host_range *range = ranges;

	while (range && (address < range->base || address >= range->base + range->bytes))
		range = range->next;
	return range;
}

CUresult host_add(void *base, size_t bytes, unsigned int flags, bool is_registered)
{
	struct host_range *range;

	if (is_registered && host_find((uintptr_t)base))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	range = calloc(1, sizeof(*range));
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->base = (uintptr_t)base;
	range->bytes = bytes;
	range->flags = flags;
	range->is_registered = is_registered;
	range->next = ranges;
	ranges = range;
	return CUDA_SUCCESS;
}

size_t host_remove(void *base, bool is_registered)
{
	struct host_range **place = &ranges;
	struct host_range *range;
	size_t bytes;

	while (*place &&
		((*place)->base != (uintptr_t)base || (*place)->is_registered != is_registered))
		place = &(*place)->next;
	range = *place;
	if (!range)
		return 0;
	bytes = range->bytes;
	*place = range->next;
	free(range);
	return bytes;
}

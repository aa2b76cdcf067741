/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: what they take of the primary one, and which streams are theirs. */
#include "sim/cuda/model/context/green.h"

#include <stdlib.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * Work in a green context takes as long as elsewhere: nothing is computed here, so there is nothing to
 * share out. What is simulated is what it takes: measured on an H200, each cost 4 MiB and two streams,
 * which stayed until the primary context was reset.
 */
#define GREEN_STREAMS 2

struct green *green_check(CUgreenCtx handle)
{
	struct green *green = (struct green *)handle;

	return green && green->magic == GREEN_MAGIC ? green : NULL;
}

struct green *green_of_stream(CUstream handle, const struct stream *stream)
{
	return !handle ? context_current_green() : stream->green;
}

/* A new green context takes memory and streams of the primary one. */
static CUresult take(struct context *primary)
{
	CUresult result = room_keep(primary, MACHINE_CONTEXT, driver.board->green_context_bytes);

	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < GREEN_STREAMS; i++) {
		result = context_count_stream(primary);
		if (result == CUDA_SUCCESS)
			continue;
		while (i-- > 0)
			context_uncount_stream(primary);
		room_let_go(primary, MACHINE_CONTEXT, driver.board->green_context_bytes);
		return result;
	}
	return CUDA_SUCCESS;
}

/* Those that have ended, the last one first. */
static struct green *spare;

static void spare_green(struct green *green)
{
	green->next_spare = spare;
	spare = green;
}

static struct green *take_green(void)
{
	struct green *green = spare;

	if (green) {
		spare = green->next_spare;
		return green;
	}
	green = calloc(1, sizeof(*green));
	if (green)
		driver_keep_relic(&green->relic);
	return green;
}

CUresult green_new(struct device *device, unsigned int sm_count, struct green **ret_green)
{
	struct green *green = take_green();
	CUresult result;

	if (!green)
		return CUDA_ERROR_OUT_OF_MEMORY;
	green->sm_count = sm_count;
	result = context_new_green(device, green, &green->context);
	if (result == CUDA_SUCCESS) {
		result = take(green->context->owner);
		if (result != CUDA_SUCCESS)
			context_end_green(green->context);
	}
	if (result != CUDA_SUCCESS) {
		spare_green(green);
		return result;
	}
	green->magic = GREEN_MAGIC;
	*ret_green = green;
	return CUDA_SUCCESS;
}

void green_end(struct green *green)
{
	struct context *owner = green->context->owner;

	green->magic = 0;
	timeline_forget_green(owner, green);
	context_end_green(green->context);
	spare_green(green);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deepest frames of executable graphs' kernels.
 *
 * Known of each context, from before the driver is asked, is the deepest that any graph has had there; and of each executable graph, from when it
 * was made, the deepest in whatever context. What is needed in a context is no more than either. One whose handle is not known, as it is just being
 * made, may need all.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/graph_frames.h"

#include "base/log.h"
#include "tenant/driver/current.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/marks.h"
#include "tenant/memory/table.h"

/* For so much each context has room from the beginning (local.c). */
#define FIRST_STACK_BYTES 1024u

static struct table contexts; /* key: a context's life; a: the deepest; b: the context */
static struct table execs;    /* key: executable graph; a: the deepest */

HOT_WORD _Atomic bool graph_frames_was_lowered;

bool graph_frames_come(uint64_t frame_bytes)
{
	CUcontext context = frame_bytes > FIRST_STACK_BYTES ? current_context() : NULL;
	CUcontext primary = context ? contexts_primary_of(context) : NULL;
	uint64_t life = context ? contexts_life_of(context) : 0;

	if (!life)
		return true;
	TABLE_SCOPE place = table_enter(&contexts, life, true);
	if (!place.entry) {
		log_error("no memory for our own tables, so a graph is refused");
		return false;
	}
	if (frame_bytes > place.entry->a)
		place.entry->a = frame_bytes;
	/* A green context is a face of its device's primary one, and may end before that. */
	place.entry->b = (uintptr_t)(primary ? primary : context);
	return true;
}

static uint64_t deepest(const struct graph_survey *survey)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < survey->place_count; i++)
		if (survey->places[i].frame_bytes > bytes)
			bytes = survey->places[i].frame_bytes;
	return bytes;
}

void graph_frames_keep(CUgraphExec exec, const struct graph_survey *survey)
{
	if (table_put(&execs, (struct table_entry){.key = (uintptr_t)exec, .a = deepest(survey)}) !=
		0)
		graph_frames_forget(exec);
}

void graph_frames_raise(CUgraphExec exec, const struct graph_survey *survey)
{
	uint64_t bytes = deepest(survey);
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	if (place.entry && bytes > place.entry->a)
		place.entry->a = bytes;
}

void graph_frames_forget(CUgraphExec exec)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	if (place.entry)
		table_remove(&place);
}

/* What is to be added where. */
struct adding {
	struct graph_survey *survey;
	uint64_t most_bytes;
	bool has_failed;
};

static void add(const struct table_entry *entry, void *argument)
{
	struct adding *adding = argument;
	uint64_t bytes = min_u64(entry->a, adding->most_bytes);
	struct graph_place *place =
		graph_survey_place(adding->survey, (CUcontext)(uintptr_t)entry->b);

	if (!place)
		adding->has_failed = true;
	else if (bytes > place->frame_bytes)
		place->frame_bytes = bytes;
}

CUresult graph_frames_add(CUgraphExec exec, struct graph_survey *survey)
{
	struct adding adding = {.survey = survey, .most_bytes = UINT64_MAX};
	struct table_entry entry;
	uint64_t life;

	if (table_get(&execs, (uintptr_t)exec, &entry) == 0)
		adding.most_bytes = entry.a;
	if (adding.most_bytes <= FIRST_STACK_BYTES)
		return CUDA_SUCCESS;
	life = marks_are_by_context() ? 0 : contexts_life_current();
	if (!life)
		table_visit(&contexts, add, &adding);
	else if (table_get(&contexts, life, &entry) == 0)
		add(&entry, &adding);
	if (!adding.has_failed)
		return CUDA_SUCCESS;
	log_error("graphs have deep frames in too many contexts, so one is refused");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void graph_frames_lower(void)
{
	atomic_store(&graph_frames_was_lowered, true);
}

static bool is_any(const struct table_entry *entry, uint64_t what)
{
	(void)entry;
	(void)what;
	return true;
}

/* Executable graphs may go with their context, and their handles come again. */
void graph_frames_life_ended(struct device *device, uint64_t life)
{
	struct table_cursor cursor = {0};
	struct table_entry entry;

	(void)device;
	if (table_take(&contexts, life, NULL) == 0)
		while (table_take_next(&execs, is_any, 0, &cursor, &entry) == 0)
			continue;
}

void graph_frames_reset_after_fork(void)
{
	table_forget(&contexts);
	table_forget(&execs);
	atomic_store(&graph_frames_was_lowered, false);
}

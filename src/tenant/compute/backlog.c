/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event of a whole context tells of all its streams, also of those that were destroyed. Where the driver records none
 * (events_record_in_context()), each stream is asked.
 */
#include "tenant/compute/backlog.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/fault.h"
#include "base/lock.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/current.h"

/* Of more the first are known. */
#define CONTEXTS 64
#define STREAMS	 1024

static struct {
	struct lock lock; /* before any meter's */
	unsigned contexts, streams;
	CUcontext context[CONTEXTS];
	struct {
		CUstream stream;
		CUcontext context;
	} stream[STREAMS];
} known;

void backlog_context_made(CUcontext context)
{
	LOCK_SCOPE(&known.lock);
	for (unsigned i = 0; i < known.contexts; i++)
		if (known.context[i] == context)
			return;
	if (known.contexts < CONTEXTS)
		known.context[known.contexts++] = context;
}

void backlog_context_ended(CUcontext context)
{
	LOCK_SCOPE(&known.lock);
	for (unsigned i = known.contexts; i-- > 0;)
		if (known.context[i] == context)
			known.context[i] = known.context[--known.contexts];
	for (unsigned i = known.streams; i-- > 0;)
		if (known.stream[i].context == context)
			known.stream[i] = known.stream[--known.streams];
}

static void forget(CUstream stream)
{
	for (unsigned i = known.streams; i-- > 0;)
		if (known.stream[i].stream == stream)
			known.stream[i] = known.stream[--known.streams];
}

void backlog_stream_made(CUstream stream)
{
	CUcontext context = NULL;

	if (!cuda.cuCtxGetCurrent || cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
		return;
	LOCK_SCOPE(&known.lock);
	forget(stream);
	if (known.streams == STREAMS)
		return;
	known.stream[known.streams].stream = stream;
	known.stream[known.streams++].context = context;
}

void backlog_stream_ends(CUstream stream)
{
	LOCK_SCOPE(&known.lock);
	forget(stream);
}

/* With the list's lock, so that no stream ends meanwhile. */
static void find_in_streams(struct meter *m, CUcontext context)
{
	streams_note_backlog(m, NULL, context);
	for (unsigned i = 0; i < known.streams; i++)
		if (known.stream[i].context == context)
			streams_note_backlog(m, known.stream[i].stream, context);
}

static void find_in_context(CUcontext context)
{
	struct meter *m = streams_meter_of(context);

	if (!m)
		return;
	LOCK_SCOPE(&m->lock);
	if (m->limits.is_backlogged && !streams_note_context_backlog(m, context))
		find_in_streams(m, context);
}

static void find_in_contexts(void)
{
	LOCK_SCOPE(&known.lock);
	for (unsigned i = 0; i < known.contexts; i++)
		find_in_context(known.context[i]);
}

void backlog_find(void)
{
	FAULT("backlog: to be found");
	find_in_contexts();
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		m->limits.is_backlogged = false;
	}
}

void backlog_reset_after_fork(void)
{
	memset(&known, 0, sizeof(known));
	known.lock = (struct lock)LOCK_INIT;
}

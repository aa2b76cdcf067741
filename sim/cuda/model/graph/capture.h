/* SPDX-License-Identifier: Apache-2.0 */
/* Capture: what is given to a stream becomes nodes of a graph. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/model/time/timeline.h"

struct graph;
struct work;

/* Each takes memory_lock, but for capture_is_on() and what stands at the end. */

bool capture_is_on(const struct stream *stream);
/* Work given to a stream that is captured becomes a node. */
CUresult capture_add(struct stream *stream, const struct work *work);
/* A call that a captured stream does not allow: the capture is lost. */
CUresult capture_forbid(struct stream *stream);
CUresult capture_record(struct stream *stream, struct event *event);
/* For a stream or an event that is captured. */
CUresult capture_wait(struct stream *stream, struct event *event);
/* A stream or an event is no part of its capture any more; is_lost: and that ruins the capture. */
void capture_leave(struct captured *captured, bool is_lost);

/* The functions from here on are called under driver.memory_lock. */

/* Memory for a stream that is captured. */
CUresult capture_alloc(
	struct stream *stream, struct device *device, size_t bytes, CUdeviceptr *ret_base);
CUresult capture_free(struct stream *stream, CUdeviceptr dptr);

/* graph: what nodes are added to, behind deps; NULL: a new one. */
CUresult capture_begin(struct stream *stream, struct graph *graph, const CUgraphNode *deps,
	size_t count, CUstreamCaptureMode mode);
CUresult capture_end(struct stream *stream, struct graph **ret_graph);
/* A context ends, and with it what its streams and events capture. */
void capture_clear(struct context *context);

CUstreamCaptureStatus capture_status(const struct stream *stream);

/* The answers a program wants about a capture; all but the status may be NULL. */
struct capture_info {
	CUstreamCaptureStatus *status;
	cuuint64_t *id;
	CUgraph *graph;
	const CUgraphNode **deps;
	const CUgraphEdgeData **edges;
	size_t *count;
};
void capture_describe(const struct stream *stream, const struct capture_info *info);

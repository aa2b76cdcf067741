/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of executable graphs. */
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/graph_exec.h"

CUresult exec_map(struct exec *exec, struct stream *stream)
{
	uint64_t ready, now = timeline_now(stream->context->device);
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&stream->context->device->time_lock);
	ready = timeline_ready_ns(stream, now);
	pthread_mutex_unlock(&stream->context->device->time_lock);
	for (struct mapping *mapping = exec->mappings; mapping && result == CUDA_SUCCESS;
		mapping = mapping->next)
		result = graph_map(mapping, ready);
	return result;
}

/* What the last launch left allocated must be gone, or goes if the program said so. */
static CUresult free_leftovers(struct exec *exec, uint64_t now)
{
	for (size_t i = 0; i < exec->count; i++) {
		struct graph_block *block = exec_block(&exec->steps[i]);

		if (!block || !block->context)
			continue;
		if ((exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0)
			return CUDA_ERROR_INVALID_VALUE;
		graph_block_free(block, now);
	}
	return CUDA_SUCCESS;
}

/* Allocates what the graph allocates, for the time being all at once. Under memory_lock. */
static CUresult begin_memory(struct exec *exec, struct stream *stream)
{
	struct context *context = stream->context;
	CUresult result = free_leftovers(exec, exec->until_ns);

	if (result == CUDA_SUCCESS)
		result = exec_map(exec, stream);
	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		struct graph_block *block = exec_block(&exec->steps[i]);

		if (block)
			result =
				graph_block_keep(block, exec_mapping(exec, block->device), context);
	}
	return result;
}

/* Under memory_lock. */
static CUresult end_memory(struct exec *exec, uint64_t until_ns)
{
	CUresult result = CUDA_SUCCESS;

	exec->until_ns = until_ns;
	for (struct mapping *mapping = exec->mappings; mapping; mapping = mapping->next)
		graph_map_busy(mapping, until_ns);
	for (size_t i = 0; i < exec->count; i++) {
		struct graph_block *block;

		if (exec->steps[i].work.type != CU_GRAPH_NODE_TYPE_MEM_FREE)
			continue;
		block = graph_block_at(exec->steps[i].work.freed);
		if (block)
			graph_block_free(block, until_ns);
		else
			result = CUDA_ERROR_INVALID_VALUE;
	}
	return result;
}

/* Does one step and says how long it takes, and whether the device is needed for it. */
static CUresult run_step(const struct step *step, struct stream *stream, uint64_t *ret_duration_ns,
	bool *ret_is_busy)
{
	const struct work *work = &step->work;
	CUresult result;
	bool has_host;

	*ret_duration_ns = 0;
	*ret_is_busy = true;
	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		*ret_duration_ns = work->kernel.duration_ns;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		result = copy_run(&work->copy, stream->context->device, ret_duration_ns, &has_host);
		*ret_is_busy = !has_host;
		return result;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill_run(&work->fill, stream->context->device, ret_duration_ns);
	default:
		return CUDA_SUCCESS;
	}
}

static void record(CUevent handle, const struct device *from, uint64_t time_ns)
{
	struct event *event = timeline_find_event(handle);

	if (!event)
		return;
	pthread_mutex_lock(&event->context->device->time_lock);
	timeline_mark(event, timeline_carry(from, event->context->device, time_ns));
	pthread_mutex_unlock(&event->context->device->time_lock);
}

/* Events are recorded and host functions run when all of the graph is done. */
static CUresult finish(const struct exec *exec, struct stream *stream, uint64_t end_ns)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < exec->count; i++) {
		const struct work *work = &exec->steps[i].work;

		if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
			record(work->event, stream->context->device, end_ns);
		else if (work->type == CU_GRAPH_NODE_TYPE_HOST &&
			 callback_add(stream, work->host.fn, NULL, work->host.userData,
				 (CUstream)stream) != 0)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

static CUresult run(struct exec *exec, struct stream *stream, uint64_t *ret_end_ns)
{
	CUresult result = CUDA_SUCCESS, finished;
	uint64_t longest = 0;
	bool is_any_busy = false, is_busy;

	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		struct step *step = &exec->steps[i];
		uint64_t begin = 0;

		for (size_t k = 0; k < step->dep_count; k++) {
			if (exec->steps[step->deps[k]].end_ns > begin)
				begin = exec->steps[step->deps[k]].end_ns;
		}
		result = run_step(step, stream, &step->end_ns, &is_busy);
		is_any_busy = is_any_busy || (is_busy && step->end_ns > 0);
		step->end_ns += begin;
		if (step->end_ns > longest)
			longest = step->end_ns;
	}
	*ret_end_ns = timeline_add(stream, longest, is_any_busy);
	finished = finish(exec, stream, *ret_end_ns);
	return result == CUDA_SUCCESS ? finished : result;
}

/* Launches of one executable graph follow each other, on whatever stream. */
ENTRY_FORMS(
	cuGraphLaunch, _ptsz, (CUgraphExec handle, CUstream stream_handle), (handle, stream_handle))
{
	struct context *context;
	struct stream *stream;
	struct exec *exec;
	uint64_t end_ns;
	CUresult result = context_stream(stream_handle, is_thread, &context, &stream), freed;

	if (result != CUDA_SUCCESS)
		return result;
	/* Becoming part of another graph is not simulated. */
	if (capture_is_on(stream))
		return capture_forbid(stream);
	pthread_mutex_lock(&driver.memory_lock);
	exec = exec_check(handle);
	if (!exec)
		result = CUDA_ERROR_INVALID_VALUE;
	else {
		timeline_hold(stream, exec->until_ns);
		result = begin_memory(exec, stream);
	}
	pthread_mutex_unlock(&driver.memory_lock);
	if (result != CUDA_SUCCESS)
		return result;
	result = run(exec, stream, &end_ns);
	pthread_mutex_lock(&driver.memory_lock);
	freed = end_memory(exec, end_ns);
	pthread_mutex_unlock(&driver.memory_lock);
	return result == CUDA_SUCCESS ? freed : result;
}

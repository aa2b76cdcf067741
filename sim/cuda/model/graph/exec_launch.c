/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of executable graphs. */
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/exec.h"
#include "sim/cuda/model/graph/graph_memory.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/time/timeline.h"

/* A launch needs the last one's memory to be free. The flag of the graph frees it here. */
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

/* Allocates what the graph allocates, for the time being all at once. */
static CUresult begin(CUgraphExec handle, struct stream *stream, struct exec **ret_exec)
{
	struct context *context = stream->context;
	struct exec *exec;
	CUresult result;

	LOCK_SCOPE(&driver.memory_lock);
	exec = exec_check(handle);
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_exec = exec;
	timeline_hold(stream, exec->until_ns);
	result = free_leftovers(exec, exec->until_ns);
	if (result == CUDA_SUCCESS)
		result = exec_map(exec, stream);
	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		struct graph_block *block = exec_block(&exec->steps[i]);

		if (block && !block->context)
			result =
				graph_block_keep(block, exec_mapping(exec, block->device), context);
	}
	return result;
}

static CUresult end(struct exec *exec, uint64_t until_ns)
{
	CUresult result = CUDA_SUCCESS;

	LOCK_SCOPE(&driver.memory_lock);
	exec->until_ns = until_ns;
	for (struct graph_mapping *mapping = exec->mappings; mapping; mapping = mapping->next)
		graph_map_busy(mapping, until_ns);
	for (size_t i = 0; i < exec->count; i++) {
		struct graph_block *block;

		if (exec->steps[i].work.type != CU_GRAPH_NODE_TYPE_MEM_FREE)
			continue;
		block = graph_block_at(exec->steps[i].work.freed);
		if (!block)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (!exec_has_block(exec, block, i, exec->count))
			graph_block_free(block, until_ns);
	}
	return result;
}

/* Events are recorded and host functions run when all of the graph is done. */
static CUresult finish(const struct exec *exec, struct stream *stream, uint64_t end_ns)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < exec->count; i++) {
		const struct work *work = &exec->steps[i].work;

		if (work->ops->finish && work->ops->finish(work, stream, end_ns) != CUDA_SUCCESS)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

static struct context *context_of(const struct step *step, const struct stream *stream)
{
	return step->work.context ? step->work.context : stream->context;
}

static bool is_elsewhere(const struct step *step, const struct stream *stream)
{
	return context_of(step, stream)->device != stream->context->device;
}

/* The steps of other devices, in a launch that began then; the stream goes on when they have all ended. */
static void run_elsewhere(
	const struct exec *exec, struct stream *stream, uint64_t begin_ns, uint64_t *ret_end_ns)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct step *step = &exec->steps[i];
		uint64_t end_ns;

		if (!step->is_busy || !is_elsewhere(step, stream))
			continue;
		end_ns = timeline_add_elsewhere(stream, context_of(step, stream),
			begin_ns + step->begin_ns, step->end_ns - step->begin_ns);
		if (end_ns > *ret_end_ns)
			*ret_end_ns = end_ns;
	}
	timeline_hold(stream, *ret_end_ns);
}

static CUresult run(struct exec *exec, struct stream *stream, uint64_t *ret_end_ns)
{
	CUresult result = CUDA_SUCCESS, added, finished;
	bool is_any_busy = false, is_any_elsewhere = false;
	uint64_t longest = 0;

	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		struct step *step = &exec->steps[i];
		uint64_t begin = 0;

		for (size_t k = 0; k < step->dep_count; k++) {
			if (exec->steps[step->deps[k]].end_ns > begin)
				begin = exec->steps[step->deps[k]].end_ns;
		}
		step->end_ns = 0;
		step->is_busy = false;
		if (!step->is_left_out)
			result = work_run(&step->work, context_of(step, stream)->device,
				&step->end_ns, &step->is_busy);
		step->is_busy = step->is_busy && step->end_ns > 0;
		if (step->is_busy && is_elsewhere(step, stream))
			is_any_elsewhere = true;
		else if (step->is_busy)
			is_any_busy = true;
		step->begin_ns = begin;
		step->end_ns += begin;
		if (step->end_ns > longest)
			longest = step->end_ns;
	}
	added = timeline_add(stream, longest, is_any_busy, ret_end_ns);
	if (added != CUDA_SUCCESS)
		return added;
	if (is_any_elsewhere)
		run_elsewhere(exec, stream, *ret_end_ns - longest, ret_end_ns);
	finished = finish(exec, stream, *ret_end_ns);
	return result == CUDA_SUCCESS ? finished : result;
}

CUresult exec_launch(CUgraphExec handle, struct stream *stream)
{
	struct exec *exec;
	uint64_t end_ns;
	CUresult result = begin(handle, stream, &exec), freed;

	if (result != CUDA_SUCCESS)
		return result;
	end_ns = exec->until_ns;
	result = run(exec, stream, &end_ns);
	freed = end(exec, end_ns);
	return result == CUDA_SUCCESS ? freed : result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks run at once. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/kernel.h"

/* Blocks of this size on one multiprocessor, by threads, blocks and shared memory alone. */
static int blocks_per_sm(int block_size, size_t shared_bytes)
{
	const struct board *board = driver.board;
	int warps = (block_size + 31) / 32;
	int blocks = board->max_threads_per_sm / 32 / warps;

	if (blocks > board->max_blocks_per_sm)
		blocks = board->max_blocks_per_sm;
	/* Each block costs 1 KiB of shared memory more since compute capability 8. */
	if (shared_bytes > 0 &&
		board->shared_per_sm_bytes / (shared_bytes + 1024) < (uint64_t)blocks)
		blocks = (int)(board->shared_per_sm_bytes / (shared_bytes + 1024));
	return blocks;
}

static CUresult occupancy(int *blocks, const void *handle, int block_size, size_t shared_bytes)
{
	if (!blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_check(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*blocks = block_size > 1024 ? 0 : blocks_per_sm(block_size, shared_bytes);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *blocks, CUfunction function, int block_size, size_t shared_bytes),
	occupancy(blocks, function, block_size, shared_bytes))

ENTRY_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *blocks, CUfunction function, int block_size, size_t shared_bytes, unsigned int flags),
	flags > 1 ? CUDA_ERROR_INVALID_VALUE
		  : occupancy(blocks, function, block_size, shared_bytes))

ENTRY_BODY(cuOccupancyMaxPotentialBlockSize,
	(int *min_grid_size, int *block_size, CUfunction handle, CUoccupancyB2DSize block_to_shared,
		size_t shared_bytes, int limit),
	(min_grid_size, block_size, handle, block_to_shared, shared_bytes, limit))
{
	int best = 0, best_threads = 0, best_blocks = 0;

	if (!min_grid_size || !block_size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_check(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	if (limit <= 0 || limit > 1024)
		limit = 1024;
	for (int size = limit; size > 0; size = (size - 1) / 32 * 32) {
		int blocks =
			blocks_per_sm(size, block_to_shared ? block_to_shared(size) : shared_bytes);

		if (blocks * size > best_threads) {
			best = size;
			best_blocks = blocks;
			best_threads = blocks * size;
		}
	}
	*block_size = best;
	*min_grid_size = best_blocks * driver.board->sm_count;
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags,
	(int *min_grid_size, int *block_size, CUfunction function,
		CUoccupancyB2DSize block_to_shared, size_t shared_bytes, int block_size_limit,
		unsigned int flags),
	cuOccupancyMaxPotentialBlockSize_body(min_grid_size, block_size, function, block_to_shared,
		shared_bytes, block_size_limit))

ENTRY_CALL(cuOccupancyAvailableDynamicSMemPerBlock,
	(size_t * bytes, CUfunction function, int blocks, int block_size),
	!bytes || blocks <= 0 || block_size <= 0 ? CUDA_ERROR_INVALID_VALUE
	: !kernel_check(function)
		? CUDA_ERROR_INVALID_HANDLE
		: (*bytes = driver.board->shared_per_sm_bytes / (unsigned int)blocks, CUDA_SUCCESS))

/* Clusters of one block. */
static CUresult count_clusters(int *count, const void *handle, const CUlaunchConfig *config)
{
	if (!count || !config)
		return CUDA_ERROR_INVALID_VALUE;
	*count = 1;
	return kernel_check(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY_CALL(cuOccupancyMaxPotentialClusterSize,
	(int *size, CUfunction function, const CUlaunchConfig *config),
	count_clusters(size, function, config))

ENTRY_CALL(cuOccupancyMaxActiveClusters,
	(int *count, CUfunction function, const CUlaunchConfig *config),
	count_clusters(count, function, config))

/* SPDX-License-Identifier: Apache-2.0 */
/* Words of memory that a stream writes, or waits for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/memory/host.h"
#include "sim/cuda/model/memory/lookup.h"
#include "sim/cuda/model/time/callback.h"

/* One operation; the same for all forms. */
struct operation {
	bool is_write;
	struct callback_word word;
};

static CUresult check(const struct stream *stream, const struct callback_word *word)
{
	bool is_host;
	CUresult result;

	if (!word->address || word->address % word->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	result = lookup_use(word->address, word->bytes, stream->context->device, &is_host);
	if (result != CUDA_SUCCESS || !is_host)
		return result;
	/* Host memory only if the driver knows it. */
	LOCK_SCOPE(&driver.memory_lock);
	return host_find(word->address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void write_now(const struct callback_word *word)
{
	memcpy((void *)word->address, &word->value, word->bytes);
}

static void write_later(void *copy)
{
	write_now(copy);
	free(copy);
}

/* As with copies the word changes at once, unless something that is waiting stands before it in the stream. */
static CUresult write_word(struct stream *stream, const struct callback_word *word)
{
	struct callback_word *copy;
	CUresult result;

	/* Relaxed: the program's own order of calls decides. */
	if (!atomic_load_explicit(&stream->callbacks, memory_order_relaxed)) {
		write_now(word);
		return CUDA_SUCCESS;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = *word;
	result = callback_add(stream, write_later, NULL, copy, (CUstream)stream);
	if (result != CUDA_SUCCESS)
		free(copy);
	return result;
}

static CUresult perform(struct stream *stream, const struct operation *operation)
{
	struct callback_word word = operation->word;
	CUresult result;

	if (operation->is_write
			? word.flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
			: word.flags & ~(unsigned int)(CU_STREAM_WAIT_VALUE_FLUSH | 3))
		return CUDA_ERROR_INVALID_VALUE;
	word.flags &= 3;
	result = check(stream, &word);
	if (result != CUDA_SUCCESS)
		return result;
	if (capture_is_on(stream))
		return capture_forbid(stream);
	if (operation->is_write)
		return write_word(stream, &word);
	return callback_await(stream, &word);
}

/* Both forms, of two versions. */
#define WORD(symbol, type, is_write)                                                         \
	ENTRY_STREAM(symbol##_v2, _ptsz, handle,                                             \
		(CUstream handle, CUdeviceptr address, type value, unsigned int flags),      \
		(handle, address, value, flags))                                             \
	{                                                                                    \
		return perform(                                                              \
			stream, &(struct operation){is_write,                                \
					{(uintptr_t)address, value, sizeof(value), flags}}); \
	}                                                                                    \
	ENTRY_STREAM(symbol, _ptsz, handle,                                                  \
		(CUstream handle, CUdeviceptr address, type value, unsigned int flags),      \
		(handle, address, value, flags))                                             \
	{                                                                                    \
		return symbol##_v2_body(stream, handle, address, value, flags);              \
	}

WORD(cuStreamWaitValue32, cuuint32_t, false)
WORD(cuStreamWaitValue64, cuuint64_t, false)
WORD(cuStreamWriteValue32, cuuint32_t, true)
WORD(cuStreamWriteValue64, cuuint64_t, true)

static CUresult perform_one(struct stream *stream, const CUstreamBatchMemOpParams *params)
{
	struct operation operation = {
		.word = {(uintptr_t)params->waitValue.address, params->waitValue.value64, 8,
			params->waitValue.flags}};

	switch (params->operation) {
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
	case CU_STREAM_MEM_OP_BARRIER:
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		operation.word.bytes = 4;
		operation.word.value = (uint32_t)operation.word.value;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	operation.is_write = params->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
			     params->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	return perform(stream, &operation);
}

/* The most operations of one call (documented). */
#define OPERATIONS_MAX 256

ENTRY_STREAM(cuStreamBatchMemOp_v2, _ptsz, handle,
	(CUstream handle, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags),
	(handle, count, params, flags))
{
	CUresult result = CUDA_SUCCESS;

	if (flags || !count || !params || count > OPERATIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = perform_one(stream, &params[i]);
	return result;
}

ENTRY_STREAM(cuStreamBatchMemOp, _ptsz, handle,
	(CUstream handle, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags),
	(handle, count, params, flags))
{
	return cuStreamBatchMemOp_v2_body(stream, handle, count, params, flags);
}

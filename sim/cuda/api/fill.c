/* SPDX-License-Identifier: Apache-2.0 */
/* Fills. */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"
#include "sim/cuda/model/memory/fill.h"

/* Six calls of a width, two of them of CUDA 2, whose device pointers and sizes have 32 bits. */
#define FILL(bits, type)                                                                       \
	ENTRY_FORMS(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, type value, size_t count),  \
		(dst, value, count))                                                           \
	{                                                                                      \
		return submit_fill(                                                            \
			NULL, is_thread, &(struct fill){dst, 0, value, bits / 8, count, 1});   \
	}                                                                                      \
	ENTRY_FORMS(cuMemsetD##bits##Async, _ptsz,                                             \
		(CUdeviceptr dst, type value, size_t count, CUstream stream),                  \
		(dst, value, count, stream))                                                   \
	{                                                                                      \
		return submit_fill(                                                            \
			stream, is_thread, &(struct fill){dst, 0, value, bits / 8, count, 1}); \
	}                                                                                      \
	ENTRY_FORMS(cuMemsetD2D##bits##_v2, _ptds,                                             \
		(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height),      \
		(dst, pitch, value, width, height))                                            \
	{                                                                                      \
		return submit_fill(NULL, is_thread,                                            \
			&(struct fill){dst, pitch, value, bits / 8, width, height});           \
	}                                                                                      \
	ENTRY_FORMS(cuMemsetD2D##bits##Async, _ptsz,                                           \
		(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,       \
			CUstream stream),                                                      \
		(dst, pitch, value, width, height, stream))                                    \
	{                                                                                      \
		return submit_fill(stream, is_thread,                                          \
			&(struct fill){dst, pitch, value, bits / 8, width, height});           \
	}                                                                                      \
	ENTRY_CALL(cuMemsetD##bits, (CUdeviceptr_v1 dst, type value, unsigned int count),      \
		cuMemsetD##bits##_v2_body(false, dst, value, count))                           \
	ENTRY_CALL(cuMemsetD2D##bits,                                                          \
		(CUdeviceptr_v1 dst, unsigned int pitch, type value, unsigned int width,       \
			unsigned int height),                                                  \
		cuMemsetD2D##bits##_v2_body(false, dst, pitch, value, width, height))

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: copies of rows and layers. What they are is said by a description: with a side on the host they
 * hold a copy engine, else they are work of the device.
 */
#include "tenant/hooks/bulk.h"

#define BYTES_2D(c) ((uint64_t)(c)->WidthInBytes * (c)->Height)
#define BYTES_3D(c) (BYTES_2D(c) * (c)->Depth)
/* A unified address may be on the host, too; the driver looks, and nobody else can tell cheaply. */
#define IS_HOSTS(c) \
	((c)->srcMemoryType == CU_MEMORYTYPE_HOST || (c)->dstMemoryType == CU_MEMORYTYPE_HOST)

static void begin(CUstream stream, bool is_hosts, uint64_t bytes, struct gate_pass *ret_pass)
{
	if (!is_hosts)
		gate_enter(stream, bulk_key(BULK_COPY_SHAPED, bytes), ret_pass);
	else
		bulk_separate(stream, bytes);
}

/* SHAPED(symbol, stream, bytes, (parameters), (arguments)), of a description that is called copy. */
#define SHAPED(symbol, stream, bytes, params, args)                   \
	HOOK_BODY(symbol, BULK_UNPACK params)                         \
	{                                                             \
		struct gate_pass pass_ = {.track = NULL};             \
		CUresult r_;                                          \
                                                                      \
		if (!hook_attach_cuda())                              \
			return CUDA_ERROR_NOT_INITIALIZED;            \
		if (bulk_matters() && copy)                           \
			begin(stream, IS_HOSTS(copy), bytes, &pass_); \
		r_ = cuda.symbol args;                                \
		gate_leave(&pass_, r_);                               \
		return r_;                                            \
	}

SHAPED(cuMemcpy2D_v2, NULL, BYTES_2D(copy), (const CUDA_MEMCPY2D *copy), (copy))
SHAPED(cuMemcpy2D_v2_ptds, CU_STREAM_PER_THREAD, BYTES_2D(copy), (const CUDA_MEMCPY2D *copy),
	(copy))
SHAPED(cuMemcpy2DUnaligned_v2, NULL, BYTES_2D(copy), (const CUDA_MEMCPY2D *copy), (copy))
SHAPED(cuMemcpy2DUnaligned_v2_ptds, CU_STREAM_PER_THREAD, BYTES_2D(copy),
	(const CUDA_MEMCPY2D *copy), (copy))
SHAPED(cuMemcpy2DAsync_v2, stream, BYTES_2D(copy), (const CUDA_MEMCPY2D *copy, CUstream stream),
	(copy, stream))
SHAPED(cuMemcpy2DAsync_v2_ptsz, bulk_stream(stream), BYTES_2D(copy),
	(const CUDA_MEMCPY2D *copy, CUstream stream), (copy, stream))

SHAPED(cuMemcpy3D_v2, NULL, BYTES_3D(copy), (const CUDA_MEMCPY3D *copy), (copy))
SHAPED(cuMemcpy3D_v2_ptds, CU_STREAM_PER_THREAD, BYTES_3D(copy), (const CUDA_MEMCPY3D *copy),
	(copy))
SHAPED(cuMemcpy3DAsync_v2, stream, BYTES_3D(copy), (const CUDA_MEMCPY3D *copy, CUstream stream),
	(copy, stream))
SHAPED(cuMemcpy3DAsync_v2_ptsz, bulk_stream(stream), BYTES_3D(copy),
	(const CUDA_MEMCPY3D *copy, CUstream stream), (copy, stream))

SHAPED(cuMemcpy3DPeer, NULL, BYTES_3D(copy), (const CUDA_MEMCPY3D_PEER *copy), (copy))
SHAPED(cuMemcpy3DPeer_ptds, CU_STREAM_PER_THREAD, BYTES_3D(copy), (const CUDA_MEMCPY3D_PEER *copy),
	(copy))
SHAPED(cuMemcpy3DPeerAsync, stream, BYTES_3D(copy),
	(const CUDA_MEMCPY3D_PEER *copy, CUstream stream), (copy, stream))
SHAPED(cuMemcpy3DPeerAsync_ptsz, bulk_stream(stream), BYTES_3D(copy),
	(const CUDA_MEMCPY3D_PEER *copy, CUstream stream), (copy, stream))

/* Descriptions whose sizes and device pointers have 32 bits */
SHAPED(cuMemcpy2D, NULL, BYTES_2D(copy), (const CUDA_MEMCPY2D_v1 *copy), (copy))
SHAPED(cuMemcpy2DUnaligned, NULL, BYTES_2D(copy), (const CUDA_MEMCPY2D_v1 *copy), (copy))
SHAPED(cuMemcpy2DAsync, stream, BYTES_2D(copy), (const CUDA_MEMCPY2D_v1 *copy, CUstream stream),
	(copy, stream))
SHAPED(cuMemcpy3D, NULL, BYTES_3D(copy), (const CUDA_MEMCPY3D_v1 *copy), (copy))
SHAPED(cuMemcpy3DAsync, stream, BYTES_3D(copy), (const CUDA_MEMCPY3D_v1 *copy, CUstream stream),
	(copy, stream))

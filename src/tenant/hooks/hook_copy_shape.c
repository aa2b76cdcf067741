/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: copies of rows and layers. What they are is said by a description: with a side on the host they
 * hold a copy engine, else they are work of the device.
 */
#include "tenant/hooks/bulk.h"

/* A unified address may be on the host, too; the driver looks, and nobody else can tell cheaply. */
#define KIND(c)                                                          \
	(!(c) ? BULK_NOTHING                                             \
		: (c)->srcMemoryType == CU_MEMORYTYPE_HOST ||            \
				(c)->dstMemoryType == CU_MEMORYTYPE_HOST \
			? BULK_ENGINE                                    \
			: BULK_COPY_SHAPED)
#define BYTES_2D(c) ((c) ? (uint64_t)(c)->WidthInBytes * (c)->Height : 0)
#define BYTES_3D(c) ((c) ? (uint64_t)(c)->WidthInBytes * (c)->Height * (c)->Depth : 0)

BULK_FORMS(cuMemcpy2D_v2, _ptds, KIND(copy), BYTES_2D(copy), const CUDA_MEMCPY2D *, copy)
BULK_FORMS(cuMemcpy2DUnaligned_v2, _ptds, KIND(copy), BYTES_2D(copy), const CUDA_MEMCPY2D *, copy)
BULK_FORMS(cuMemcpy2DAsync_v2, _ptsz, KIND(copy), BYTES_2D(copy), const CUDA_MEMCPY2D *, copy,
	CUstream, stream)

BULK_FORMS(cuMemcpy3D_v2, _ptds, KIND(copy), BYTES_3D(copy), const CUDA_MEMCPY3D *, copy)
BULK_FORMS(cuMemcpy3DAsync_v2, _ptsz, KIND(copy), BYTES_3D(copy), const CUDA_MEMCPY3D *, copy,
	CUstream, stream)

BULK_FORMS(cuMemcpy3DPeer, _ptds, KIND(copy), BYTES_3D(copy), const CUDA_MEMCPY3D_PEER *, copy)
BULK_FORMS(cuMemcpy3DPeerAsync, _ptsz, KIND(copy), BYTES_3D(copy), const CUDA_MEMCPY3D_PEER *, copy,
	CUstream, stream)

/* Descriptions whose sizes and device pointers have 32 bits */
BULK_BODY(cuMemcpy2D, NULL, KIND(copy), BYTES_2D(copy), const CUDA_MEMCPY2D_v1 *, copy)
BULK_BODY(cuMemcpy2DUnaligned, NULL, KIND(copy), BYTES_2D(copy), const CUDA_MEMCPY2D_v1 *, copy)
BULK_BODY(cuMemcpy2DAsync, stream, KIND(copy), BYTES_2D(copy), const CUDA_MEMCPY2D_v1 *, copy,
	CUstream, stream)
BULK_BODY(cuMemcpy3D, NULL, KIND(copy), BYTES_3D(copy), const CUDA_MEMCPY3D_v1 *, copy)
BULK_BODY(cuMemcpy3DAsync, stream, KIND(copy), BYTES_3D(copy), const CUDA_MEMCPY3D_v1 *, copy,
	CUstream, stream)

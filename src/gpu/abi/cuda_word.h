/* SPDX-License-Identifier: Apache-2.0 */
/* Words that a stream writes or waits for: types and functions. Included by gpu/abi/cuda.h only. */
#pragma once

typedef enum CUstreamWaitValue_flags_enum {
	CU_STREAM_WAIT_VALUE_GEQ = 0,
	CU_STREAM_WAIT_VALUE_EQ = 1,
	CU_STREAM_WAIT_VALUE_AND = 2,
	CU_STREAM_WAIT_VALUE_NOR = 3,
	CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
} CUstreamWaitValue_flags;

typedef enum CUstreamWriteValue_flags_enum {
	CU_STREAM_WRITE_VALUE_DEFAULT = 0,
	CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1,
} CUstreamWriteValue_flags;

typedef enum CUstreamBatchMemOpType_enum {
	CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
	CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
	CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
	CU_STREAM_MEM_OP_BARRIER = 6,
} CUstreamBatchMemOpType;

/* waitValue and writeValue of NVIDIA's union are of one form. */
typedef union CUstreamBatchMemOpParams_union {
	CUstreamBatchMemOpType operation;
	struct {
		CUstreamBatchMemOpType operation;
		CUdeviceptr address;
		cuuint64_t value64; /* the low half of it for 32 bits */
		unsigned int flags;
		CUdeviceptr alias;
	} waitValue;
	cuuint64_t pad[6];
} CUstreamBatchMemOpParams;
_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "CUstreamBatchMemOpParams");

typedef CUresult cuStreamWaitValue32_fn(
	CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags);
typedef CUresult cuStreamWaitValue64_fn(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags);
typedef CUresult cuStreamBatchMemOp_fn(
	CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags);
typedef cuStreamWaitValue32_fn cuStreamWaitValue32_ptsz_fn;
typedef cuStreamWaitValue32_fn cuStreamWaitValue32_v2_fn;
typedef cuStreamWaitValue32_fn cuStreamWaitValue32_v2_ptsz_fn;
typedef cuStreamWaitValue64_fn cuStreamWaitValue64_ptsz_fn;
typedef cuStreamWaitValue64_fn cuStreamWaitValue64_v2_fn;
typedef cuStreamWaitValue64_fn cuStreamWaitValue64_v2_ptsz_fn;
typedef cuStreamWaitValue32_fn cuStreamWriteValue32_fn;
typedef cuStreamWaitValue32_fn cuStreamWriteValue32_ptsz_fn;
typedef cuStreamWaitValue32_fn cuStreamWriteValue32_v2_fn;
typedef cuStreamWaitValue32_fn cuStreamWriteValue32_v2_ptsz_fn;
typedef cuStreamWaitValue64_fn cuStreamWriteValue64_fn;
typedef cuStreamWaitValue64_fn cuStreamWriteValue64_ptsz_fn;
typedef cuStreamWaitValue64_fn cuStreamWriteValue64_v2_fn;
typedef cuStreamWaitValue64_fn cuStreamWriteValue64_v2_ptsz_fn;
typedef cuStreamBatchMemOp_fn cuStreamBatchMemOp_ptsz_fn;
typedef cuStreamBatchMemOp_fn cuStreamBatchMemOp_v2_fn;
typedef cuStreamBatchMemOp_fn cuStreamBatchMemOp_v2_ptsz_fn;

/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts and device resources: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

typedef enum CUdevResourceType_enum {
	CU_DEV_RESOURCE_TYPE_INVALID = 0,
	CU_DEV_RESOURCE_TYPE_SM = 1,
} CUdevResourceType;

typedef struct CUdevSmResource_st {
	unsigned int smCount;
	unsigned int minSmPartitionSize;
	unsigned int smCoscheduledAlignment;
} CUdevSmResource;

typedef struct CUdevResource_st {
	CUdevResourceType type;
	unsigned char internal[92];
	union {
		CUdevSmResource sm;
		unsigned char oversize[48];
	};
} CUdevResource;
_Static_assert(sizeof(CUdevResource) == 144, "CUdevResource");

typedef struct CUdevResourceDesc_st *CUdevResourceDesc;

enum { /* flags of cuGreenCtxCreate, where it is required, and of cuDevSmResourceSplitByCount */
	CU_GREEN_CTX_DEFAULT_STREAM = 1,
	CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 1,
	CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2,
};

typedef CUresult cuDeviceGetDevResource_fn(
	CUdevice device, CUdevResource *resource, CUdevResourceType type);
typedef CUresult cuCtxGetDevResource_fn(
	CUcontext context, CUdevResource *resource, CUdevResourceType type);
typedef CUresult cuGreenCtxGetDevResource_fn(
	CUgreenCtx green, CUdevResource *resource, CUdevResourceType type);
typedef CUresult cuDevSmResourceSplitByCount_fn(CUdevResource *groups, unsigned int *count,
	const CUdevResource *input, CUdevResource *remaining, unsigned int flags,
	unsigned int least);
typedef CUresult cuDevResourceGenerateDesc_fn(
	CUdevResourceDesc *desc, CUdevResource *resources, unsigned int count);
typedef CUresult cuGreenCtxCreate_fn(
	CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned int flags);
typedef CUresult cuGreenCtxDestroy_fn(CUgreenCtx green);
typedef CUresult cuGreenCtxGetId_fn(CUgreenCtx green, unsigned long long *id);
typedef CUresult cuGreenCtxStreamCreate_fn(
	CUstream *stream, CUgreenCtx green, unsigned int flags, int priority);
typedef CUresult cuGreenCtxRecordEvent_fn(CUgreenCtx green, CUevent event);
typedef CUresult cuGreenCtxWaitEvent_fn(CUgreenCtx green, CUevent event);
typedef CUresult cuCtxFromGreenCtx_fn(CUcontext *context, CUgreenCtx green);
typedef CUresult cuCtxRecordEvent_fn(CUcontext context, CUevent event);
typedef CUresult cuCtxWaitEvent_fn(CUcontext context, CUevent event);
typedef CUresult cuStreamGetGreenCtx_fn(CUstream stream, CUgreenCtx *green);

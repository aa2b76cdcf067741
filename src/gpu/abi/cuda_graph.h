/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and stream capture: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

typedef cuuint64_t CUgraphConditionalHandle;

typedef enum CUgraphNodeType_enum {
	CU_GRAPH_NODE_TYPE_KERNEL = 0,
	CU_GRAPH_NODE_TYPE_MEMCPY = 1,
	CU_GRAPH_NODE_TYPE_MEMSET = 2,
	CU_GRAPH_NODE_TYPE_HOST = 3,
	CU_GRAPH_NODE_TYPE_GRAPH = 4,
	CU_GRAPH_NODE_TYPE_EMPTY = 5,
	CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
	CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
	CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
	CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
	CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
	CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
} CUgraphNodeType;

enum { /* cuGraphInstantiateWithFlags */
	CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
	CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
	CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
	CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
};

typedef enum CUgraphInstantiateResult_enum {
	CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
	CUDA_GRAPH_INSTANTIATE_ERROR = 1,
	CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
	CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
	CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
} CUgraphInstantiateResult;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
	cuuint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;
_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "CUDA_GRAPH_INSTANTIATE_PARAMS");

typedef enum CUgraphExecUpdateResult_enum {
	CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
	CU_GRAPH_EXEC_UPDATE_ERROR = 1,
	CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
	CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
	CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
	CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
	CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
	CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
	CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
} CUgraphExecUpdateResult;

typedef struct CUgraphExecUpdateResultInfo_st {
	CUgraphExecUpdateResult result;
	CUgraphNode errorNode;
	CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;
_Static_assert(sizeof(CUgraphExecUpdateResultInfo) == 24, "CUgraphExecUpdateResultInfo");

typedef enum CUgraphMem_attribute_enum {
	CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
	CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
} CUgraphMem_attribute;

typedef struct CUgraphEdgeData_st {
	unsigned char from_port;
	unsigned char to_port;
	unsigned char type;
	unsigned char reserved[5];
} CUgraphEdgeData;
_Static_assert(sizeof(CUgraphEdgeData) == 8, "CUgraphEdgeData");

typedef struct CUDA_KERNEL_NODE_PARAMS_v1_st {
	CUfunction func;
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == 56, "CUDA_KERNEL_NODE_PARAMS_v1");

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern; /* meant where func is NULL */
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == 72, "CUDA_KERNEL_NODE_PARAMS_v2");

typedef struct CUDA_MEMCPY_NODE_PARAMS_st {
	int flags;
	int reserved;
	CUcontext copyCtx;
	CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS_v1_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value;
	unsigned int elementSize;
	size_t width; /* elements */
	size_t height;
} CUDA_MEMSET_NODE_PARAMS_v1;

typedef struct CUDA_MEMSET_NODE_PARAMS_v2_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value;
	unsigned int elementSize;
	size_t width;
	size_t height;
	CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;

typedef struct CUDA_HOST_NODE_PARAMS_st {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef enum CUgraphChildGraphNodeOwnership_enum {
	CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE = 0,
	CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE = 1,
} CUgraphChildGraphNodeOwnership;

typedef struct CUDA_CHILD_GRAPH_NODE_PARAMS_st {
	CUgraph graph;
	CUgraphChildGraphNodeOwnership ownership;
} CUDA_CHILD_GRAPH_NODE_PARAMS;

typedef struct CUDA_EVENT_NODE_PARAMS_st { /* of recording and of waiting */
	CUevent event;
} CUDA_EVENT_NODE_PARAMS;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_st {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	CUdeviceptr dptr; /* answered when the node is added */
} CUDA_MEM_ALLOC_NODE_PARAMS;
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");

typedef struct CUDA_MEM_FREE_NODE_PARAMS_st {
	CUdeviceptr dptr;
} CUDA_MEM_FREE_NODE_PARAMS;

typedef enum CUgraphConditionalNodeType_enum {
	CU_GRAPH_COND_TYPE_IF = 0,
	CU_GRAPH_COND_TYPE_WHILE = 1,
	CU_GRAPH_COND_TYPE_SWITCH = 2,
} CUgraphConditionalNodeType;

typedef struct CUDA_CONDITIONAL_NODE_PARAMS_st {
	CUgraphConditionalHandle handle;
	CUgraphConditionalNodeType type;
	unsigned int size;
	CUgraph *phGraph_out; /* answered: as many graphs, in the driver's own memory */
	CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;

typedef struct CUgraphNodeParams_st {
	CUgraphNodeType type;
	int reserved0[3];
	union {
		long long reserved1[29];
		CUDA_KERNEL_NODE_PARAMS_v2 kernel;
		CUDA_MEMCPY_NODE_PARAMS memcpy;
		CUDA_MEMSET_NODE_PARAMS_v2 memset;
		CUDA_HOST_NODE_PARAMS host;
		CUDA_CHILD_GRAPH_NODE_PARAMS graph;
		CUDA_EVENT_NODE_PARAMS eventWait;
		CUDA_EVENT_NODE_PARAMS eventRecord;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		CUDA_MEM_FREE_NODE_PARAMS free;
		CUDA_CONDITIONAL_NODE_PARAMS conditional;
	};
	long long reserved2;
} CUgraphNodeParams;
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");

/* Stream capture */
typedef CUresult cuStreamBeginCapture_fn(CUstream stream);
typedef cuStreamBeginCapture_fn cuStreamBeginCapture_ptsz_fn;
typedef CUresult cuStreamBeginCaptureToGraph_fn(CUstream stream, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUstreamCaptureMode mode);
typedef cuStreamBeginCaptureToGraph_fn cuStreamBeginCaptureToGraph_ptsz_fn;
typedef CUresult cuStreamGetCaptureInfo_fn(
	CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id);
typedef cuStreamGetCaptureInfo_fn cuStreamGetCaptureInfo_ptsz_fn;
typedef CUresult cuStreamGetCaptureInfo_v2_fn(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count);
typedef cuStreamGetCaptureInfo_v2_fn cuStreamGetCaptureInfo_v2_ptsz_fn;
typedef CUresult cuStreamGetCaptureInfo_v3_fn(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
	const CUgraphEdgeData **edges, size_t *count);
typedef cuStreamGetCaptureInfo_v3_fn cuStreamGetCaptureInfo_v3_ptsz_fn;

/* Building */
typedef CUresult cuGraphConditionalHandleCreate_fn(CUgraphConditionalHandle *handle, CUgraph graph,
	CUcontext context, unsigned int default_value, unsigned int flags);
typedef CUresult cuGraphCreate_fn(CUgraph *graph, unsigned int flags);
typedef CUresult cuGraphDestroy_fn(CUgraph graph);
typedef CUresult cuGraphClone_fn(CUgraph *clone, CUgraph graph);
typedef CUresult cuGraphAddKernelNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
typedef CUresult cuGraphAddKernelNode_v2_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult cuGraphAddMemcpyNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, const CUDA_MEMCPY3D *params,
	CUcontext context);
typedef CUresult cuGraphAddMemsetNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, const CUDA_MEMSET_NODE_PARAMS_v1 *params,
	CUcontext context);
typedef CUresult cuGraphAddHostNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, const CUDA_HOST_NODE_PARAMS *params);
typedef CUresult cuGraphAddEmptyNode_fn(
	CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count);
typedef CUresult cuGraphAddChildGraphNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUgraph child);
typedef CUresult cuGraphAddMemAllocNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params);
typedef CUresult cuGraphAddMemFreeNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUdeviceptr dptr);
typedef CUresult cuGraphAddEventRecordNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUevent event);
typedef CUresult cuGraphAddNode_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params);
typedef CUresult cuGraphAddNode_v2_fn(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params);
typedef CUresult cuGraphAddDependencies_fn(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
typedef CUresult cuGraphAddDependencies_v2_fn(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count);
typedef CUresult cuGraphDestroyNode_fn(CUgraphNode node);

/* Looking */
typedef CUresult cuGraphGetNodes_fn(CUgraph graph, CUgraphNode *nodes, size_t *count);
typedef CUresult cuGraphGetRootNodes_fn(CUgraph graph, CUgraphNode *nodes, size_t *count);
typedef CUresult cuGraphGetEdges_fn(
	CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
typedef CUresult cuGraphGetEdges_v2_fn(
	CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count);
typedef CUresult cuGraphNodeGetType_fn(CUgraphNode node, CUgraphNodeType *type);
typedef CUresult cuGraphNodeGetDependencies_fn(
	CUgraphNode node, CUgraphNode *dependencies, size_t *count);
typedef CUresult cuGraphNodeGetDependencies_v2_fn(
	CUgraphNode node, CUgraphNode *dependencies, CUgraphEdgeData *edges, size_t *count);
typedef CUresult cuGraphKernelNodeGetParams_fn(
	CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params);
typedef CUresult cuGraphKernelNodeGetParams_v2_fn(
	CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult cuGraphMemAllocNodeGetParams_fn(
	CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params);
typedef CUresult cuGraphMemFreeNodeGetParams_fn(CUgraphNode node, CUdeviceptr *dptr);
typedef CUresult cuGraphChildGraphNodeGetGraph_fn(CUgraphNode node, CUgraph *graph);

/* Executing */
typedef CUresult cuGraphInstantiate_fn(
	CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes);
typedef cuGraphInstantiate_fn cuGraphInstantiate_v2_fn;
typedef CUresult cuGraphInstantiateWithFlags_fn(
	CUgraphExec *exec, CUgraph graph, unsigned long long flags);
typedef CUresult cuGraphInstantiateWithParams_fn(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
typedef cuGraphInstantiateWithParams_fn cuGraphInstantiateWithParams_ptsz_fn;
typedef CUresult cuGraphUpload_fn(CUgraphExec exec, CUstream stream);
typedef cuGraphUpload_fn cuGraphUpload_ptsz_fn;
typedef CUresult cuGraphLaunch_fn(CUgraphExec exec, CUstream stream);
typedef cuGraphLaunch_fn cuGraphLaunch_ptsz_fn;
typedef CUresult cuGraphExecDestroy_fn(CUgraphExec exec);
typedef CUresult cuGraphExecUpdate_fn(
	CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *result);
typedef CUresult cuGraphExecUpdate_v2_fn(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
typedef CUresult cuGraphNodeSetParams_fn(CUgraphNode node, CUgraphNodeParams *params);
typedef CUresult cuGraphEventRecordNodeSetEvent_fn(CUgraphNode node, CUevent event);
typedef CUresult cuGraphExecEventRecordNodeSetEvent_fn(
	CUgraphExec exec, CUgraphNode node, CUevent event);
typedef CUresult cuGraphKernelNodeSetParams_fn(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
typedef CUresult cuGraphKernelNodeSetParams_v2_fn(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult cuGraphExecNodeSetParams_fn(
	CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params);
typedef CUresult cuGraphExecKernelNodeSetParams_fn(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params);
typedef CUresult cuGraphExecKernelNodeSetParams_v2_fn(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
typedef CUresult cuGraphExecChildGraphNodeSetParams_fn(
	CUgraphExec exec, CUgraphNode node, CUgraph child);

/* The memory of a device's graphs */
typedef CUresult cuDeviceGetGraphMemAttribute_fn(
	CUdevice device, CUgraphMem_attribute attribute, void *value);
typedef CUresult cuDeviceSetGraphMemAttribute_fn(
	CUdevice device, CUgraphMem_attribute attribute, void *value);
typedef CUresult cuDeviceGraphMemTrim_fn(CUdevice device);

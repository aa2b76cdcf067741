/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of processes: types and function types. Included by gpu/abi/cuda.h only. */
#pragma once

typedef enum CUprocessState_enum {
	CU_PROCESS_STATE_RUNNING = 0,
	CU_PROCESS_STATE_LOCKED = 1,
	CU_PROCESS_STATE_CHECKPOINTED = 2,
	CU_PROCESS_STATE_FAILED = 3,
} CUprocessState;

typedef struct CUcheckpointLockArgs_st {
	unsigned int timeoutMs; /* 0: none */
	unsigned int reserved0;
	cuuint64_t reserved1[7];
} CUcheckpointLockArgs;
_Static_assert(sizeof(CUcheckpointLockArgs) == 64, "CUcheckpointLockArgs");

typedef struct CUcheckpointCheckpointArgs_st {
	cuuint64_t reserved[8];
} CUcheckpointCheckpointArgs;

typedef struct CUcheckpointGpuPair_st {
	CUuuid oldUuid;
	CUuuid newUuid;
} CUcheckpointGpuPair;

typedef struct CUcheckpointRestoreArgs_st {
	CUcheckpointGpuPair *gpuPairs;
	unsigned int gpuPairsCount;
	char reserved[52 - sizeof(CUcheckpointGpuPair *)];
	cuuint64_t reserved1;
} CUcheckpointRestoreArgs;
_Static_assert(sizeof(CUcheckpointRestoreArgs) == 64, "CUcheckpointRestoreArgs");

typedef struct CUcheckpointUnlockArgs_st {
	cuuint64_t reserved[8];
} CUcheckpointUnlockArgs;

typedef CUresult cuCheckpointProcessGetState_fn(int pid, CUprocessState *state);
typedef CUresult cuCheckpointProcessGetRestoreThreadId_fn(int pid, int *tid);
typedef CUresult cuCheckpointProcessLock_fn(int pid, CUcheckpointLockArgs *args);
typedef CUresult cuCheckpointProcessCheckpoint_fn(int pid, CUcheckpointCheckpointArgs *args);
typedef CUresult cuCheckpointProcessRestore_fn(int pid, CUcheckpointRestoreArgs *args);
typedef CUresult cuCheckpointProcessUnlock_fn(int pid, CUcheckpointUnlockArgs *args);

/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of other processes: they are locked, give their memory back, and take it again. */
#include <string.h>

#include "sim/cuda/api/entry.h"

static CUresult change(int pid, enum machine_stage from, enum machine_stage to)
{
	switch (machine_change_stage(driver.machine, pid, from, to)) {
	case 0:
		return CUDA_SUCCESS;
	case MACHINE_E_STAGE:
		return CUDA_ERROR_ILLEGAL_STATE;
	case MACHINE_E_FULL:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case MACHINE_E_LOST: /* and its state stays CU_PROCESS_STATE_CHECKPOINTED (both measured) */
		return CUDA_ERROR_OPERATING_SYSTEM;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Whether optional arguments are as asked: what is reserved is zero. */
static bool are_zero(const void *bytes, size_t size)
{
	static const char zero[64];

	return memcmp(bytes, zero, size) == 0;
}

ENTRY_CONTROL(cuCheckpointProcessGetState, (int pid, CUprocessState *state), (pid, state))
{
	static const CUprocessState states[] = {
		[MACHINE_RUNNING] = CU_PROCESS_STATE_RUNNING,
		[MACHINE_LOCKED] = CU_PROCESS_STATE_LOCKED,
		[MACHINE_CHECKPOINTED] = CU_PROCESS_STATE_CHECKPOINTED,
	};
	enum machine_stage stage;

	if (!state || machine_read_stage(driver.machine, pid, &stage) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*state = states[stage];
	return CUDA_SUCCESS;
}

/* Memory is restored by nobody in particular here, so the first thread stands for the one. */
ENTRY_CONTROL(cuCheckpointProcessGetRestoreThreadId, (int pid, int *tid), (pid, tid))
{
	enum machine_stage stage;

	if (!tid || machine_read_stage(driver.machine, pid, &stage) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*tid = pid;
	return CUDA_SUCCESS;
}

/* Calls under way end by themselves, so the time limit is never needed. */
ENTRY_CONTROL(cuCheckpointProcessLock, (int pid, CUcheckpointLockArgs *args), (pid, args))
{
	if (args && (args->reserved0 != 0 || !are_zero(args->reserved1, 56)))
		return CUDA_ERROR_INVALID_VALUE;
	return change(pid, MACHINE_RUNNING, MACHINE_LOCKED);
}

ENTRY_CONTROL(
	cuCheckpointProcessCheckpoint, (int pid, CUcheckpointCheckpointArgs *args), (pid, args))
{
	if (args && !are_zero(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	return change(pid, MACHINE_LOCKED, MACHINE_CHECKPOINTED);
}

ENTRY_CONTROL(cuCheckpointProcessRestore, (int pid, CUcheckpointRestoreArgs *args), (pid, args))
{
	/* On other devices than before it is not simulated. */
	if (args && args->gpuPairsCount > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return change(pid, MACHINE_CHECKPOINTED, MACHINE_LOCKED);
}

ENTRY_CONTROL(cuCheckpointProcessUnlock, (int pid, CUcheckpointUnlockArgs *args), (pid, args))
{
	if (args && !are_zero(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	return change(pid, MACHINE_LOCKED, MACHINE_RUNNING);
}

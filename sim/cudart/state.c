/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime knows of each thread: its device and its last error. */
#include <pthread.h>
#include <stdatomic.h>

#include "sim/cudart/entry.h"

#define DEVICES_MAX 16

static _Thread_local int device;
static _Thread_local CUresult last_error;

/* Devices whose primary context this process holds. */
static struct {
	pthread_mutex_t lock;
	CUcontext of[DEVICES_MAX];
} primary = {.lock = PTHREAD_MUTEX_INITIALIZER};

CUresult runtime_start(void)
{
	return cuInit(0);
}

static CUresult retain(int ordinal, CUcontext *ret_context)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&primary.lock);
	if (!primary.of[ordinal])
		result = cuDevicePrimaryCtxRetain(&primary.of[ordinal], ordinal);
	if (result != CUDA_SUCCESS)
		primary.of[ordinal] = NULL;
	*ret_context = primary.of[ordinal];
	pthread_mutex_unlock(&primary.lock);
	return result;
}

/* Makes it the thread's, with its primary context current. */
static CUresult use_device(int ordinal)
{
	CUcontext context;
	CUresult result = runtime_start();
	int count;

	if (result == CUDA_SUCCESS)
		result = cuDeviceGetCount(&count);
	if (result == CUDA_SUCCESS && (ordinal < 0 || ordinal >= count || ordinal >= DEVICES_MAX))
		result = CUDA_ERROR_INVALID_DEVICE;
	if (result == CUDA_SUCCESS)
		result = retain(ordinal, &context);
	if (result == CUDA_SUCCESS)
		result = cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS)
		device = ordinal;
	return result;
}

CUresult runtime_enter(void)
{
	CUcontext context = NULL;
	CUresult result = runtime_start();

	if (result == CUDA_SUCCESS)
		result = cuCtxGetCurrent(&context);
	return result == CUDA_SUCCESS && !context ? use_device(device) : result;
}

CUresult runtime_leave(CUresult result)
{
	if (result != CUDA_SUCCESS)
		last_error = result;
	return result;
}

int runtime_device(void)
{
	CUdevice current;

	return cuCtxGetDevice(&current) == CUDA_SUCCESS ? current : device;
}

static _Atomic unsigned long long resets;

unsigned long long runtime_resets(void)
{
	/* Relaxed: a launch beside a reset comes before or after. */
	return atomic_load_explicit(&resets, memory_order_relaxed);
}

static CUresult reset(void)
{
	int ordinal = runtime_device();

	pthread_mutex_lock(&primary.lock);
	primary.of[ordinal] = NULL;
	pthread_mutex_unlock(&primary.lock);
	/* Relaxed: see runtime_resets(). */
	atomic_fetch_add_explicit(&resets, 1, memory_order_relaxed);
	cuCtxSetCurrent(NULL);
	return cuDevicePrimaryCtxReset_v2(ordinal);
}

RUNTIME(cudaDeviceReset, (void), reset())
RUNTIME_BODY(cudaSetDevice, (int ordinal), runtime_start, use_device(ordinal))
RUNTIME_BODY(cudaInitDevice, (int ordinal, unsigned int flags, unsigned int more), runtime_start,
	((void)flags, (void)more, use_device(ordinal)))

static CUresult get_device(int *ret_device)
{
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = runtime_device();
	return CUDA_SUCCESS;
}

RUNTIME_EARLY(cudaGetDevice, (int *ordinal), get_device(ordinal))

RUNTIME_EXPORT cudaError_t cudaGetLastError(void);
RUNTIME_EXPORT cudaError_t cudaGetLastError(void)
{
	CUresult result = last_error;

	last_error = CUDA_SUCCESS;
	return result;
}

RUNTIME_EXPORT cudaError_t cudaPeekAtLastError(void);
RUNTIME_EXPORT cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

/* The runtime's names of the commonest errors; the rest have the driver's. */
static const char *name_of(CUresult error)
{
	const char *text;

	switch ((int)error) {
	case CUDA_SUCCESS:
		return "cudaSuccess";
	case CUDA_ERROR_INVALID_VALUE:
		return "cudaErrorInvalidValue";
	case CUDA_ERROR_OUT_OF_MEMORY:
		return "cudaErrorMemoryAllocation";
	case CUDA_ERROR_NOT_INITIALIZED:
		return "cudaErrorInitializationError";
	case CUDA_ERROR_NO_DEVICE:
		return "cudaErrorNoDevice";
	case CUDA_ERROR_INVALID_DEVICE:
		return "cudaErrorInvalidDevice";
	case CUDA_ERROR_INVALID_HANDLE:
		return "cudaErrorInvalidResourceHandle";
	case CUDA_ERROR_NOT_READY:
		return "cudaErrorNotReady";
	case CUDA_ERROR_NOT_SUPPORTED:
		return "cudaErrorNotSupported";
	default:
		return cuGetErrorName(error, &text) == CUDA_SUCCESS ? text
								    : "unrecognized error code";
	}
}

RUNTIME_EXPORT const char *cudaGetErrorName(cudaError_t error);
RUNTIME_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	return name_of(error);
}

RUNTIME_EXPORT const char *cudaGetErrorString(cudaError_t error);
RUNTIME_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	const char *text;

	return cuGetErrorString(error, &text) == CUDA_SUCCESS ? text : "unrecognized error code";
}

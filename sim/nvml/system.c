/* SPDX-License-Identifier: Apache-2.0 */
/* Init, shutdown, and what concerns the system as a whole. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/nvml/entry.h"

/* The major version of the NVML interface that this driver branch speaks (measured). */
#define NVML_INTERFACE_MAJOR "13"

ENTRY_OPEN(nvmlInit, (void), node_init)
ENTRY_OPEN(nvmlInit_v2, (void), node_init)
/* The driver takes any flags, also those it does not know (measured). */
ENTRY_OPEN(nvmlInitWithFlags, (unsigned int flags), node_init)

/* Also where the driver is gone (sim/machine/presence.h). */
ENTRY_OPEN(nvmlShutdown, (void), node_shutdown)

ENTRY_EXPORT nvmlErrorString_fn nvmlErrorString;
const char *nvmlErrorString(nvmlReturn_t result)
{
	static const char *const texts[] = {
		[NVML_SUCCESS] = "Success",
		[NVML_ERROR_UNINITIALIZED] = "Uninitialized",
		[NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
		[NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
		[NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
		[NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
		[NVML_ERROR_NOT_FOUND] = "Not Found",
		[NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
		[NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
		[NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
		[NVML_ERROR_TIMEOUT] = "Timeout",
		[NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
		[NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
		[NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
		[NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
		[NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
		[NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
		[NVML_ERROR_OPERATING_SYSTEM] = "GPU access blocked by the operating system",
		[NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver/library version mismatch",
		[NVML_ERROR_IN_USE] = "In use by another client",
		[NVML_ERROR_MEMORY] = "Insufficient Memory",
		[NVML_ERROR_NO_DATA] = "No data",
		[NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "vGPU ECC not supported",
		[NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
		[NVML_ERROR_FREQ_NOT_SUPPORTED] = "Invalid Frequency",
		[NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
		[NVML_ERROR_DEPRECATED] = "Requested functionality has been deprecated",
		[NVML_ERROR_NOT_READY] = "System is not in ready state",
		[NVML_ERROR_GPU_NOT_FOUND] = "No supported GPUs were found",
		[NVML_ERROR_INVALID_STATE] =
			"Resource not in correct state to perform requested operation",
		[NVML_ERROR_RESET_TYPE_NOT_SUPPORTED] =
			"Reset type is not supported for given device",
	};

	if ((unsigned int)result >= sizeof(texts) / sizeof(texts[0]))
		return "Unknown Error";
	return texts[result];
}

ENTRY_BODY(nvmlSystemGetDriverVersion, (char *version, unsigned int length), (version, length))
{
	return node_reply_text(node_board()->driver_version, version, length);
}

ENTRY_BODY(nvmlSystemGetNVMLVersion, (char *version, unsigned int length), (version, length))
{
	char text[64];

	snprintf(text, sizeof(text), NVML_INTERFACE_MAJOR ".%s", node_board()->driver_version);
	return node_reply_text(text, version, length);
}

ENTRY_BODY(nvmlSystemGetCudaDriverVersion, (int *version), (version))
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = node_board()->cuda_version;
	return NVML_SUCCESS;
}

ENTRY_ALIAS(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion, (int *version),
	(version))

/* The first word of the command line, cut to the buffer (measured). */
ENTRY_BODY(nvmlSystemGetProcessName, (unsigned int pid, char *name, unsigned int length),
	(pid, name, length))
{
	char path[64];
	char word[4096];
	_cleanup_fd_ int fd = -1;
	ssize_t got;

	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_ERROR_NOT_FOUND;
	got = read(fd, word, sizeof(word) - 1);
	if (got < 0)
		return NVML_ERROR_NOT_FOUND;
	word[got] = '\0';
	snprintf(name, length, "%s", word);
	return NVML_SUCCESS;
}

/* Neither S-class systems nor cards that the administrator hides from the driver. */
static nvmlReturn_t reply_none(unsigned int *count)
{
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlUnitGetCount, (unsigned int *count), (count))
{
	return reply_none(count);
}

ENTRY_BODY(nvmlGetExcludedDeviceCount, (unsigned int *count), (count))
{
	return reply_none(count);
}

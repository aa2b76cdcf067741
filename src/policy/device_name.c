/* SPDX-License-Identifier: Apache-2.0 */
/* When two names mean one device. */
#include "policy/device_name.h"

#include <string.h>

#define KIND_LENGTH 4
#define CORE_LENGTH (95 - KIND_LENGTH) /* NVML_DEVICE_UUID_V2_BUFFER_SIZE, its zero, and the kind */

const char *device_name_core(const char *name)
{
	bool has_kind =
		strncmp(name, "GPU-", KIND_LENGTH) == 0 || strncmp(name, "MIG-", KIND_LENGTH) == 0;

	return has_kind ? name + KIND_LENGTH : name;
}

bool device_name_is_same(const char *a, const char *b)
{
	return strncmp(device_name_core(a), device_name_core(b), CORE_LENGTH) == 0;
}

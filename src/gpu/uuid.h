/* SPDX-License-Identifier: Apache-2.0 */
/* A device's UUID as text, the one name of a device that every library agrees on. */
#pragma once

#include "gpu/abi/cuda.h"

#define UUID_TEXT_BYTES 96 /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */

/* "GPU-b0f6c78f-1e2d-81bf-660c-1bac5b80b05c" of the driver's 16 bytes. */
void uuid_format(const CUuuid *uuid, char ret_text[UUID_TEXT_BYTES]);

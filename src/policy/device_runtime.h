/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the device's own runtime, by the names that code needs them by.
 *
 * Kernels are launched by kernels through functions whose names the compiler changed with each version of that interface
 * (cudaLaunchDevice, __cudaCDP2LaunchDeviceV2), and through calls that the library of the toolkit leaves to the driver
 * (__cuda_syscall_cnpv2LaunchDevice). All of them bring the same runtime.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether it is one that allocates, or has to do with launches from kernels. */
bool device_runtime_is_heap(const char *name, size_t length);

/* Whether it is the one that prints. */
bool device_runtime_is_printf(const char *name, size_t length);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multicast objects, and the memory that is bound to them.
 *
 * An object takes no memory of a device, and keeps what is bound to it: a binding is one more reference to the memory's
 * holding (mapped.h), as a mapping is. It ends when the program unbinds just what it bound, or with the object. That is a
 * holding as well, without a charge: its references are handles and mappings. What is bound to an object that other
 * processes may have stays charged until it is unbound here, or the process ends.
 */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/mapped.h"

/* Has the driver make an object. */
CUresult multicast_create(const CUmulticastObjectProp *properties,
	CUmemGenericAllocationHandle *ret_object) MUST_CHECK;

/* A part of an object, and of the memory that is bound there. */
struct multicast_part {
	CUmemGenericAllocationHandle object;
	size_t offset, memory_offset, size;
	unsigned long long flags;
	bool is_named; /* the device is, as CUDA 13.1 has it; else it is where the memory lies */
	CUdevice device;
};

/*
 * Has the driver bind the memory of a pinned reference, which it ends. The driver may wait in there until other processes
 * have added their devices.
 */
CUresult multicast_bind(
	const struct multicast_part *part, const struct mapped_reference *reference) MUST_CHECK;

/* Has the driver unbind, and ends the reference of what was bound just there. */
CUresult multicast_unbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
	size_t size) MUST_CHECK;

/* An object's holding has ended, and nobody else has the object: so have its bindings. */
void multicast_object_ended(CUmemGenericAllocationHandle object, uint32_t serial);

/* For a child of fork(). */
void multicast_reset_after_fork(void);

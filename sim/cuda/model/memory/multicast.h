/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects: which memory is bound to one, and lives for as long as it is. */
#pragma once

#include "gpu/abi/cuda.h"

struct handle;
struct multicast; /* what a handle (vmm.h) has beside its size where it is such an object */

/* All functions here are called under driver.memory_lock. */

struct multicast *multicast_new(unsigned int devices);
/* Returns what was bound, to be let go, and is called again; NULL: nothing is left, and the object is freed. */
struct handle *multicast_end(struct multicast *multicast);

/* A part of the object, on one device. */
struct multicast_place {
	CUdevice device;
	size_t offset, size;
};

CUresult multicast_add_device(struct multicast *multicast, CUdevice device);
/* The caller's hold of the memory becomes the binding's. */
CUresult multicast_bind(
	struct multicast *multicast, struct multicast_place place, struct handle *memory);
/* What was bound just there, to be let go; or NULL. */
struct handle *multicast_unbind(struct multicast *multicast, struct multicast_place place);

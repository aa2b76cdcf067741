/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices the containers of a pod were assigned, as the scheduler writes it into the pod's annotations.
 *
 *	GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;GPU-c,NVIDIA,1000,0:;
 *
 * A device is UUID, vendor, MiB and percent of its compute time, and ends with a colon; a container is the devices of
 * one slot, and ends with a semicolon. Init containers come first. hami.io/vgpu-devices-allocated stays as it was
 * written; of hami.io/vgpu-devices-to-allocate the slots are emptied one by one.
 *
 * What other writers do is read: no terminators, more than four fields, ",,0,0:" for no device, a part of a device
 * behind its UUID in brackets, and slots of containers without devices that are left out (assignment_match()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"

#define ASSIGNMENT_TO_ALLOCATE	  "hami.io/vgpu-devices-to-allocate"
#define ASSIGNMENT_ALLOCATED	  "hami.io/vgpu-devices-allocated"
#define ASSIGNMENT_VENDOR	  "NVIDIA"

#define ASSIGNMENT_UUID_BYTES	  96
#define ASSIGNMENT_VENDOR_BYTES	  64
#define ASSIGNMENT_PART_BYTES	  32
#define ASSIGNMENT_DEVICES_MAX	  1024 /* of a pod */
#define ASSIGNMENT_CONTAINERS_MAX 1024

struct assignment_device {
	char uuid[ASSIGNMENT_UUID_BYTES];
	char part[ASSIGNMENT_PART_BYTES]; /* "1g.10gb-0" of "GPU-a[1g.10gb-0]"; "" where none */
	char vendor[ASSIGNMENT_VENDOR_BYTES];
	int32_t memory_mib, cores_percent; /* 0 or more */
};

/* The devices of one container; none: it has no device, or was served already. */
struct assignment_slot {
	struct assignment_device *devices;
	size_t count;
};

struct assignment {
	struct assignment_slot *slots;
	size_t count;
	struct assignment_device *devices; /* of all slots, one after another */
};

#define ASSIGNMENT_NULL \
	{               \
		0       \
	}

/* Whether an annotation can carry it, and the plugin reads it there. */
bool assignment_is_uuid(const char *uuid);

/*
 * Reads an annotation's text, any bytes up to a zero byte. -EINVAL with err set, a sentence that names slot and device;
 * -ENOMEM.
 */
int assignment_decode(
	const char *text, struct assignment *ret_assignment, struct err *err) MUST_CHECK;

/* Accepts what is all zero, and may be called twice. */
void assignment_deinit(struct assignment *assignment);

/* Writes it as an annotation, which the caller frees. -ENOMEM. */
int assignment_encode(const struct assignment *assignment, char **ret_text) MUST_CHECK;

/* The first slot with devices, which is the next to be served; false where all are empty. */
bool assignment_next(const struct assignment *assignment, size_t *ret_slot);

/* Empties a slot. */
void assignment_consume(struct assignment *assignment, size_t slot);

/* What a container asks for in the pod's specification. Init containers come first. */
struct assignment_need {
	int64_t count; /* of the count resource; 0: it asks for no device */
	bool is_init;
};

/*
 * Which container each slot is for. The slots must be as they were written (-allocated), because emptied ones are not
 * told from those of containers without devices. HAMi 2.10 has a slot for each container, before 2.9 for each
 * that is no init container, and 2.10 leaves out those without devices where it does not mean to: the first of
 * these readings in which each slot with devices is that of a container that asks for as many is right. One that leaves
 * an app container without the devices that it asks for comes after those that do not.
 * ret_containers has a place for each slot; of one without devices it says nothing. -EINVAL with err set where
 * no reading fits.
 */
int assignment_match(const struct assignment *assignment, const struct assignment_need *needs,
	size_t need_count, size_t *ret_containers, struct err *err) MUST_CHECK;

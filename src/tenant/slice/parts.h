/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the tenant library, and what each does at the turning points of a process.
 *
 * The table is written where all parts are known (hooks/parts.c) and handed down before anything else
 * happens. A module says here what is due, and each part does its own.
 */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/slice/state.h"

/* Why the books are compared with what is. */
enum parts_when {
	PARTS_TICK,    /* in passing */
	PARTS_VIEW,    /* the program plans by what is free */
	PARTS_REFUSAL, /* something does not fit */
};

/* A member is NULL where the part has nothing to do. */
struct part {
	const char *name;
	void (*reset_after_fork)(
		void); /* in a child of fork(): as new; the parent's locks are void */
	void (*context_comes)(struct device *device); /* before the driver is asked for it */
	void (*context_made)(CUcontext context);
	void (*context_ends)(
		CUcontext context); /* before the driver is asked to end it, which it may refuse */
	void (*context_ended)(struct device *device, CUcontext context);
	/* gives back what the part charged for things that ended with this life of a context */
	void (*life_ended)(struct device *device, uint64_t life);
	/* a multicast object, by the serial number of its holding, that no other process has */
	void (*object_ended)(CUmemGenericAllocationHandle object, uint32_t serial);
	/* before a quota of 0 becomes another one, and when it has */
	void (*quota_comes)(struct device *device);
	void (*quota_came)(struct device *device);
	void (*compare)(struct device *device, enum parts_when when);
	void (*collect)(struct device *device); /* before a refusal: corrects the books */
	void (*trim)(
		struct device *device); /* then: gives memory back that the program does not use */
};

/* Hands the table down; count rows, constant, never freed. The same table may come twice. */
void parts_hand_down(const struct part *parts, unsigned count);

void parts_reset_after_fork(void);
void parts_context_comes(struct device *device);
void parts_context_made(CUcontext context);
void parts_context_ends(CUcontext context);
void parts_context_ended(struct device *device, CUcontext context);
void parts_life_ended(struct device *device, uint64_t life);
void parts_object_ended(CUmemGenericAllocationHandle object, uint32_t serial);
void parts_quota_comes(struct device *device);
void parts_quota_came(struct device *device);
void parts_compare(struct device *device, enum parts_when when);
void parts_collect(struct device *device);
void parts_trim(struct device *device);

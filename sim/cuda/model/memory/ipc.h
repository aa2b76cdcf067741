/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with other processes: what this one holds of it, and where it opened it. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/model/memory/heap.h"

/* All functions here are called under driver.memory_lock. */

/*
 * What the process holds of the machine's kept memory (machine.h), however often: making it and
 * holding it count, dropping counts back.
 */
bool ipc_keep(struct device *device, enum machine_kind kind, uint64_t bytes,
	enum machine_shown shown, struct machine_kept *ret_kept);
void ipc_drop(uint32_t index);

bool ipc_hold(
	uint32_t index, uint32_t generation, bool is_from_maker, struct machine_kept *ret_kept);

/* The content of handles that are bytes, and of what kind one is. */
#define TICKET_MEMORY UINT64_C(0x54454b4349545649) /* opened at a new address */
#define TICKET_FABRIC UINT64_C(0x54454b4349545646) /* imported as created memory, or a pool */
#define TICKET_POOLED UINT64_C(0x54454b4349545650) /* of a pointer in an imported pool */
struct ticket {
	uint64_t magic;
	uint32_t index, generation;
	uint64_t offset, bytes; /* of the allocation in the kept memory, for its pointer */
	int32_t pid;
	uint32_t
		unused; /* 0, in the place of padding: memory has one handle, however often it is asked for */
};

/*
 * Opens it at a new address, *ret_base; is_held: with a hold that closing it drops. False without
 * memory, and then the hold is the caller's.
 */
bool ipc_open(struct context *context, struct device *device, const struct ticket *ticket,
	bool is_held, CUdeviceptr *ret_base);

/*
 * Opens memory of another process by its own handle, or counts one more opening of it; and the end. The handle says how large the
 * memory is, and is believed as a card's driver believes it: all of the memory is held, whatever size it says.
 */
CUresult ipc_open_held(struct context *context, const struct ticket *ticket, CUdeviceptr *ret_base);
CUresult ipc_close(CUdeviceptr base);

/* Closes everything that was opened in a context. */
void ipc_clear(struct context *context);

/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of libnvidia-ml.so.1 share: the attached machine, handles, the way in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/machine.h"

/* The exported functions. */
enum node_call {
#define ENTRY(symbol) NODE_##symbol,
#include "sim/nvml/entry.def"
	NODE_CALLS
};

/*
 * nvmlInit and nvmlShutdown are counted: the machine is attached from the first to the last. As with
 * the real library the last shutdown must not race with other calls.
 */
nvmlReturn_t node_init(enum node_call call);
nvmlReturn_t node_shutdown(enum node_call call);

/* The start of every other function: refused before init, counted, and told an injected fault. */
nvmlReturn_t node_enter(enum node_call call);
/* The same, and the index behind a handle; a handle that is none of ours is an invalid argument. */
nvmlReturn_t node_enter_device(enum node_call call, nvmlDevice_t device, int *ret_index);

/* Whether a handle is of a device, which is there: SUCCESS, INVALID_ARGUMENT or GPU_IS_LOST. */
nvmlReturn_t node_check(nvmlDevice_t device);

/* Between init and shutdown. */
const struct board *node_board(void);

/*
 * Whether $VGPU_SIM_NVML holds the word, as it was at the first nvmlInit: "host-pids" (an older driver,
 * which names processes by the PIDs of the machine's first namespace), "accounting" (accounting mode
 * is on), "sessions" (each process with a context uses the encoder and captures a screen).
 */
bool node_is_told(const char *word);

struct machine *node_machine(void);

/*
 * The devices that this process sees ($NVIDIA_VISIBLE_DEVICES at the first nvmlInit): how many, the index
 * in the machine of each, and back. Everywhere else an index is one of the machine's.
 */
int node_count(void);
int node_visible(int place);
int node_place(int index);

/* The handle of device `index`. */
nvmlDevice_t node_handle(int index);
/* The handle of a part of a card, by its places there (sim/machine/mig.h), and back. */
nvmlDevice_t node_part_handle(int index, int place, unsigned int compute);
bool node_find_part(nvmlDevice_t device, int *ret_index, int *ret_place, unsigned int *ret_compute);
/* The index behind a handle, or -1 for a handle that is none of ours. */
int node_index(nvmlDevice_t device);

/* What NVML takes as "the last sampling period". */
#define NODE_WINDOW_NS UINT64_C(1000000000)

/* A snapshot of the machine, to be freed; NULL when there is no memory or the state is broken. */
struct machine_snapshot *node_read_snapshot(uint64_t window_ns);

/* Copies `text` to the caller's buffer: SUCCESS, INVALID_ARGUMENT or INSUFFICIENT_SIZE. */
nvmlReturn_t node_reply_text(const char *text, char *buffer, unsigned int length);

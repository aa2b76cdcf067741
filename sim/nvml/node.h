/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of libnvidia-ml.so.1 share: the attached machine, handles, the way in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/nvml.h"
#include "sim/machine/machine.h"

enum entry {
#define ENTRY(symbol) ENTRY_##symbol,
#include "sim/nvml/entry.def"
	ENTRY_COUNT
};

/* The exported name of entry number `entry`. */
const char *entry_name(unsigned int entry);

/* Defines an exported function; its type comes from gpu/abi/nvml.h, its row is in entry.def. */
#define BODY(symbol, ...)                                          \
	__attribute__((visibility("default"))) symbol##_fn symbol; \
	nvmlReturn_t symbol(__VA_ARGS__)

/* First statement of every body but those of nvmlInit*: counted, injected, refused before init. */
#define ENTER(symbol)                                              \
	do {                                                       \
		nvmlReturn_t entered = node_enter(ENTRY_##symbol); \
		if (entered != NVML_SUCCESS)                       \
			return entered;                            \
	} while (0)

/* Refuses a call unless what it was given is right. */
#define REQUIRE(claim)                                      \
	do {                                                \
		if (!(claim))                               \
			return NVML_ERROR_INVALID_ARGUMENT; \
	} while (0)

/*
 * nvmlInit and nvmlShutdown: counted, the machine is attached from the first to the last. As with
 * the real library the last shutdown must not race with other calls.
 */
nvmlReturn_t node_init(enum entry entry);
nvmlReturn_t node_shutdown(void);

nvmlReturn_t node_enter(enum entry entry);

/* Between init and shutdown. */
const struct board *node_board(void);

/*
 * Whether $VGPU_SIM_NVML holds the word, as it was at the first nvmlInit: "host-pids" (an older driver,
 * which names processes by the PIDs of the machine's first namespace), "accounting" (accounting mode
 * is on).
 */
bool node_is_told(const char *word);

/* The handle of device `index`, which must be below device_count. */
nvmlDevice_t node_handle(int index);
/* The index behind a handle, or -1 for a handle that is none of ours. */
int node_index(nvmlDevice_t device);

/* What NVML takes as "the last sampling period". */
#define NODE_WINDOW_NS UINT64_C(1000000000)

/* A snapshot of the machine, to be freed; NULL when there is no memory or the state is broken. */
struct machine_snapshot *node_read_snapshot(uint64_t window_ns);

/* Copies `text` to the caller's buffer: SUCCESS, INVALID_ARGUMENT or INSUFFICIENT_SIZE. */
nvmlReturn_t node_reply_text(const char *text, char *buffer, unsigned int length);

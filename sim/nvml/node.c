/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attached machine and the way into every function.
 *
 * NVML only looks: the process never joins the machine, so that asking takes no memory of a card
 * and the asker is in no process list. A handle is the address of a row of a static table: it stays
 * valid from one init to the next, as callers expect, and a wild pointer is told from a handle by
 * its place alone.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine/inject.h"
#include "sim/nvml/node.h"

struct nvmlDevice_st {
	char unused[64];
};

static struct nvmlDevice_st handles[BOARD_DEVICES_MAX];

static struct {
	pthread_mutex_t lock; /* of init and shutdown */
	unsigned int users;   /* read without the lock: see node_enter() */
	struct machine *machine;
	char words[64];
	int calls[ENTRY_COUNT]; /* the numbers under which inject.h counts; < 0 none */
} node = {.lock = PTHREAD_MUTEX_INITIALIZER};

static nvmlReturn_t enter_attached(enum entry entry)
{
	if (node.calls[entry] < 0)
		return NVML_SUCCESS;
	return (nvmlReturn_t)inject_enter(node.machine, (unsigned int)node.calls[entry]);
}

static nvmlReturn_t attach(void)
{
	const char *words = getenv("VGPU_SIM_NVML");
	char why[256] = "";

	if (machine_open(NULL, NULL, &node.machine, why, sizeof(why))) {
		fprintf(stderr, "libnvidia-ml (simulated): %s\n", why);
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
	snprintf(node.words, sizeof(node.words), "%s", words ? words : "");
	for (unsigned int i = 0; i < ENTRY_COUNT; i++)
		node.calls[i] = call_find(entry_name(i));
	return NVML_SUCCESS;
}

static nvmlReturn_t init_locked(enum entry entry)
{
	nvmlReturn_t result;

	if (!node.users) {
		result = attach();
		if (result != NVML_SUCCESS)
			return result;
	}
	result = enter_attached(entry);
	if (result == NVML_SUCCESS) {
		/* Pairs with the acquire in node_enter(): who sees the user sees the machine. */
		__atomic_store_n(&node.users, node.users + 1, __ATOMIC_RELEASE);
	} else if (!node.users) {
		machine_close(node.machine);
		node.machine = NULL;
	}
	return result;
}

nvmlReturn_t node_init(enum entry entry)
{
	nvmlReturn_t result;

	pthread_mutex_lock(&node.lock);
	result = init_locked(entry);
	pthread_mutex_unlock(&node.lock);
	return result;
}

nvmlReturn_t node_shutdown(void)
{
	pthread_mutex_lock(&node.lock);
	if (!node.users) {
		pthread_mutex_unlock(&node.lock);
		return NVML_ERROR_UNINITIALIZED;
	}
	/* Pairs with the acquire in node_enter(). */
	__atomic_store_n(&node.users, node.users - 1, __ATOMIC_RELEASE);
	if (!node.users) {
		machine_close(node.machine);
		node.machine = NULL;
	}
	pthread_mutex_unlock(&node.lock);
	return NVML_SUCCESS;
}

nvmlReturn_t node_enter(enum entry entry)
{
	/* Pairs with the releases in init_locked() and node_shutdown(). */
	if (!__atomic_load_n(&node.users, __ATOMIC_ACQUIRE))
		return NVML_ERROR_UNINITIALIZED;
	return enter_attached(entry);
}

const struct board *node_board(void)
{
	return machine_board(node.machine);
}

bool node_is_told(const char *word)
{
	return strstr(node.words, word) != NULL;
}

nvmlDevice_t node_handle(int index)
{
	return &handles[index];
}

int node_index(nvmlDevice_t device)
{
	for (int i = 0; i < node_board()->device_count; i++)
		if (device == &handles[i])
			return i;
	return -1;
}

struct machine_snapshot *node_read_snapshot(uint64_t window_ns)
{
	struct machine_snapshot *snapshot = malloc(sizeof(*snapshot));

	if (snapshot && machine_read_snapshot(node.machine, window_ns, snapshot)) {
		free(snapshot);
		return NULL;
	}
	return snapshot;
}

nvmlReturn_t node_reply_text(const char *text, char *buffer, unsigned int length)
{
	size_t size = strlen(text) + 1;

	if (!buffer)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (length < size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(buffer, text, size);
	return NVML_SUCCESS;
}

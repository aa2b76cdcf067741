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
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine/board.h"
#include "sim/machine/inject.h"
#include "sim/machine/lock.h"
#include "sim/machine/mig.h"
#include "sim/machine/presence.h"
#include "sim/machine/visible.h"
#include "sim/nvml/node.h"

struct nvmlDevice_st {
	char unused[64];
};

static struct nvmlDevice_st handles[BOARD_DEVICES_MAX];
static struct nvmlDevice_st parts[BOARD_DEVICES_MAX * MIG_INSTANCES_MAX * MIG_COMPUTES_MAX];

static struct {
	pthread_mutex_t lock;	    /* of init and shutdown */
	_Atomic unsigned int users; /* read without the lock: see node_enter() */
	struct machine *machine;
	uint32_t starts; /* of the driver, when it was attached */
	char words[64];
	int visible[BOARD_DEVICES_MAX];
	int visible_count;
	int calls[NODE_CALLS]; /* the numbers under which inject.h counts; < 0 none */
} node = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const names[] = {
#define ENTRY(symbol) #symbol,
#include "sim/nvml/entry.def"
};

static nvmlReturn_t enter_attached(enum node_call call)
{
	if (node.calls[call] < 0)
		return NVML_SUCCESS;
	return (nvmlReturn_t)inject_enter(node.machine, (unsigned int)node.calls[call]);
}

/* Whether the machine is of the board that vgpu run was asked for; one that is there already may be of another. */
static bool is_as_asked(char *ret_why, size_t size)
{
	const char *asked = getenv("VGPU_SIM_BOARD_ASKED");
	struct board wanted;

	if (!asked || !*asked)
		return true;
	if (board_load(asked, &wanted, ret_why, size))
		return false;
	if (memcmp(node_board(), &wanted, sizeof(wanted)) == 0)
		return true;
	snprintf(ret_why, size,
		"a machine with another board exists already: %s, not %s as asked for (vgpu-sim "
		"reset "
		"drops it)",
		node_board()->name, asked);
	return false;
}

static nvmlReturn_t attach(void)
{
	const char *words = getenv("VGPU_SIM_NVML");
	char why[256] = "";

	if (machine_open(NULL, NULL, &node.machine, why, sizeof(why))) {
		fprintf(stderr, "libnvidia-ml (simulated): %s\n", why);
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
	if (!is_as_asked(why, sizeof(why))) {
		fprintf(stderr, "libnvidia-ml (simulated): %s\n", why);
		machine_close(node.machine);
		node.machine = NULL;
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
	node.starts = presence_starts(node.machine);
	snprintf(node.words, sizeof(node.words), "%s", words ? words : "");
	node.visible_count = visible_cards(node_board(), node.visible);
	for (int i = 0; i < NODE_CALLS; i++)
		node.calls[i] = call_find(names[i]);
	return NVML_SUCCESS;
}

static void detach(void)
{
	machine_close(node.machine);
	node.machine = NULL;
}

/* Under the lock. */
static unsigned int count_users(void)
{
	/* Relaxed: only changed under the lock. */
	return atomic_load_explicit(&node.users, memory_order_relaxed);
}

static void set_users(unsigned int users)
{
	/* Pairs with the acquire in node_enter(): who sees the user sees the machine. */
	atomic_store_explicit(&node.users, users, memory_order_release);
}

nvmlReturn_t node_init(enum node_call call)
{
	nvmlReturn_t result = NVML_SUCCESS;
	LOCK_SCOPE(&node.lock);

	if (!node.machine)
		result = attach();
	if (result != NVML_SUCCESS)
		return result;
	result = enter_attached(call);
	if (result == NVML_SUCCESS && presence_is_stopped(node.machine))
		result = NVML_ERROR_DRIVER_NOT_LOADED;
	if (result == NVML_SUCCESS)
		set_users(count_users() + 1);
	else if (!count_users())
		detach();
	return result;
}

nvmlReturn_t node_shutdown(enum node_call call)
{
	nvmlReturn_t result;
	LOCK_SCOPE(&node.lock);

	if (!count_users())
		return NVML_ERROR_UNINITIALIZED;
	result = enter_attached(call);
	if (result != NVML_SUCCESS)
		return result;
	set_users(count_users() - 1);
	if (!count_users())
		detach();
	return NVML_SUCCESS;
}

nvmlReturn_t node_enter(enum node_call call)
{
	/* Pairs with the release in set_users(). */
	if (!atomic_load_explicit(&node.users, memory_order_acquire))
		return NVML_ERROR_UNINITIALIZED;
	if (presence_is_stopped(node.machine))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	/* What was opened of a driver that is gone stays void. */
	if (presence_starts(node.machine) != node.starts)
		return NVML_ERROR_UNKNOWN;
	return enter_attached(call);
}

nvmlReturn_t node_check(nvmlDevice_t device)
{
	int place, index = node_index(device);
	unsigned int compute;

	if (index < 0)
		return node_find_part(device, &index, &place, &compute)
			       ? NVML_ERROR_NOT_SUPPORTED
			       : NVML_ERROR_INVALID_ARGUMENT;
	return presence_is_lost(node.machine, index) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t node_enter_device(enum node_call call, nvmlDevice_t device, int *ret_index)
{
	nvmlReturn_t result = node_enter(call);

	if (result != NVML_SUCCESS)
		return result;
	*ret_index = node_index(device);
	return node_check(device);
}

const struct board *node_board(void)
{
	return machine_board(node.machine);
}

bool node_is_told(const char *word)
{
	return strstr(node.words, word);
}

struct machine *node_machine(void)
{
	return node.machine;
}

int node_count(void)
{
	return node.visible_count;
}

int node_visible(int place)
{
	return node.visible[place];
}

int node_place(int index)
{
	int place = 0;

	while (node.visible[place] != index)
		place++;
	return place;
}

nvmlDevice_t node_handle(int index)
{
	return &handles[index];
}

nvmlDevice_t node_part_handle(int index, int place, unsigned int compute)
{
	return &parts[(unsigned int)(index * MIG_INSTANCES_MAX + place) * MIG_COMPUTES_MAX +
		      compute];
}

bool node_find_part(nvmlDevice_t device, int *ret_index, int *ret_place, unsigned int *ret_compute)
{
	uintptr_t number = ((uintptr_t)device - (uintptr_t)parts) / sizeof(parts[0]);

	if ((uintptr_t)device < (uintptr_t)parts || number >= sizeof(parts) / sizeof(parts[0]))
		return false;
	*ret_compute = (unsigned int)(number % MIG_COMPUTES_MAX);
	*ret_place = (int)(number / MIG_COMPUTES_MAX % MIG_INSTANCES_MAX);
	*ret_index = (int)(number / MIG_COMPUTES_MAX / MIG_INSTANCES_MAX);
	return true;
}

int node_index(nvmlDevice_t device)
{
	for (int i = 0; i < node.visible_count; i++)
		if (device == &handles[node.visible[i]])
			return node.visible[i];
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

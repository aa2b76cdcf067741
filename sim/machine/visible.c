/* SPDX-License-Identifier: Apache-2.0 */
/* Which cards of the machine a process sees at all: those that a container runtime would have put in. */
#include "sim/machine/visible.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine/mig.h"

/* Whether the entry, `length` bytes of the list, names the card. */
static bool is_card(const char *entry, size_t length, const struct board *board, int index)
{
	char number[16], text[MACHINE_UUID_SIZE];
	uint8_t uuid[16];

	board_uuid(board, index, uuid);
	machine_uuid_text(uuid, text);
	snprintf(number, sizeof(number), "%d", index);
	return (length == strlen(text) && !memcmp(entry, text, length)) ||
	       (length == strlen(number) && !memcmp(entry, number, length));
}

static bool is_part(const char *entry, size_t length, const struct board *board, int index,
	unsigned int id, unsigned int compute)
{
	char text[MACHINE_UUID_SIZE];

	mig_uuid_text(board, index, id, compute, text);
	return length == strlen(text) && !memcmp(entry, text, length);
}

/* The card, or any part that it can have. */
static bool is_named(const char *entry, size_t length, const struct board *board, int index)
{
	if (strncmp(entry, "MIG-", 4) != 0)
		return is_card(entry, length, board, index);
	for (unsigned int id = 0; id < 2 * MIG_MEMORY_SLICES; id++)
		for (unsigned int compute = 0; compute < MIG_COMPUTES_MAX; compute++)
			if (is_part(entry, length, board, index, id, compute))
				return true;
	return false;
}

/* An entry that names no card shows none: with NVIDIA's runtime the container would not start. */
static bool is_visible(const char *list, const struct board *board, int index)
{
	if (!list || !strcmp(list, "all"))
		return true;
	for (const char *entry = list; *entry; entry += *entry == ',') {
		size_t length = strcspn(entry, ",");

		if (is_named(entry, length, board, index))
			return true;
		entry += length;
	}
	return false;
}

int visible_cards(const struct board *board, int *ret_indices)
{
	const char *list = getenv("NVIDIA_VISIBLE_DEVICES");
	int count = 0;

	for (int i = 0; i < board->device_count; i++)
		if (is_visible(list, board, i))
			ret_indices[count++] = i;
	return count;
}

/* A list that names parts shows these alone, and all parts of the cards that it names whole. */
bool visible_part(const struct board *board, int index, unsigned int id, unsigned int compute)
{
	const char *list = getenv("NVIDIA_VISIBLE_DEVICES");

	if (!list || !strcmp(list, "all"))
		return true;
	for (const char *entry = list; *entry; entry += *entry == ',') {
		size_t length = strcspn(entry, ",");

		if (is_card(entry, length, board, index) ||
			is_part(entry, length, board, index, id, compute))
			return true;
		entry += length;
	}
	return false;
}

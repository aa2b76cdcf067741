/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES: which devices a process sees, and in which order. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/cuda/model/driver.h"
#include "sim/machine/visible.h"

/*
 * The driver's rules: a list of indices or of UUIDs (a prefix will do if it fits one device only);
 * what follows the first entry that names no device, or names it in the other way than the first
 * one, is not read (measured on two H200: "GPU-86e34f1e,0" is one device); a device named twice makes the
 * whole list empty; the empty list shows nothing. Entries for MIG devices are part.c's.
 */

/* Those that the machine shows the process at all, which are counted from 0. */
struct cards {
	const struct board *board;
	int count;
	int index[MACHINE_DEVICES_MAX];
};

/* The device an entry names, or -1. */
static int find_entry(const char *entry, const struct cards *cards)
{
	char *end;
	long index;
	int found = -1;

	if (strncmp(entry, "GPU-", 4) == 0) {
		for (int i = 0; i < cards->count; i++) {
			char text[MACHINE_UUID_SIZE];
			uint8_t uuid[16];

			board_uuid(cards->board, cards->index[i], uuid);
			machine_uuid_text(uuid, text);
			if (strlen(entry) > strlen(text) ||
				strncasecmp(entry, text, strlen(entry)) != 0)
				continue;
			if (found >= 0)
				return -1;
			found = cards->index[i];
		}
		return found;
	}
	if (!isdigit((unsigned char)entry[0]))
		return -1;
	index = strtol(entry, &end, 10);
	return *end == '\0' && index < cards->count ? cards->index[index] : -1;
}

int visible_parse(const char *list, const struct board *board, int ret_indices[MACHINE_DEVICES_MAX])
{
	bool is_seen[MACHINE_DEVICES_MAX] = {false};
	bool is_by_index = false;
	struct cards cards = {.board = board};
	int count = 0;

	cards.count = visible_cards(board, cards.index);
	if (!list) {
		memcpy(ret_indices, cards.index, sizeof(cards.index));
		return cards.count;
	}
	while (*list != '\0') {
		char entry[128];
		size_t length;
		int index;

		list += strspn(list, " \t");
		length = strcspn(list, ",");
		if (length >= sizeof(entry))
			break;
		memcpy(entry, list, length);
		while (length > 0 && isspace((unsigned char)entry[length - 1]))
			length--;
		entry[length] = '\0';
		index = find_entry(entry, &cards);
		if (count == 0)
			is_by_index = isdigit((unsigned char)entry[0]);
		if (index < 0 || is_by_index != (isdigit((unsigned char)entry[0]) != 0))
			break;
		if (is_seen[index])
			return 0;
		is_seen[index] = true;
		ret_indices[count++] = index;
		list += strcspn(list, ",");
		if (*list == ',')
			list++;
	}
	return count;
}

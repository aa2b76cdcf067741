/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a board, and who its cards are. */
#include "sim/machine/board.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/board_builtin.h"

/* Far above any honest description; a file of another kind is refused instead of read whole. */
#define FILE_MAX_BYTES 65536

static int complain(const char *path, int error, const char *what, char *ret_why, size_t why_size)
{
	snprintf(ret_why, why_size, "%s: %s%s%s", path, what, error == -EINVAL ? "" : ": ",
		error == -EINVAL ? "" : strerror(-error));
	return error;
}

static int load_file(const char *path, struct board *ret_board, char *ret_why, size_t why_size)
{
	_cleanup_file_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *text = malloc(FILE_MAX_BYTES + 1);
	size_t size;

	if (!file)
		return complain(path, -errno, "cannot be opened", ret_why, why_size);
	if (!text)
		return -ENOMEM;
	size = fread(text, 1, FILE_MAX_BYTES + 1, file);
	if (ferror(file))
		return complain(path, -EIO, "cannot be read", ret_why, why_size);
	if (size > FILE_MAX_BYTES || memchr(text, '\0', size))
		return complain(path, -EINVAL, "not a board file: too long, or not text", ret_why,
			why_size);
	text[size] = '\0';
	return board_parse(path, text, ret_board, ret_why, why_size);
}

int board_load(const char *name_or_path, struct board *ret_board, char *ret_why, size_t why_size)
{
	const char *text = board_builtin_find(name_or_path);
	size_t length = strlen(name_or_path);
	char names[256];

	if (text)
		return board_parse(name_or_path, text, ret_board, ret_why, why_size);
	if (strchr(name_or_path, '/') ||
		(length > 6 && !strcmp(name_or_path + length - 6, ".board")))
		return load_file(name_or_path, ret_board, ret_why, why_size);
	snprintf(ret_why, why_size,
		"no board '%s' is built in; there are %s (a file needs a '/' or the ending .board)",
		name_or_path, board_builtin_names(names, sizeof(names)));
	return -ENOENT;
}

/* A bijection that leaves no trace of its argument's order (the finisher of MurmurHash3). */
static uint64_t scatter(uint64_t x)
{
	x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
	x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

static uint64_t device_number(const struct board *board, int device, uint64_t purpose)
{
	return scatter(scatter(scatter(board->uuid_seed) + (uint64_t)device) + purpose);
}

void board_uuid(const struct board *board, int device, uint8_t ret_uuid[16])
{
	uint64_t halves[2] = {device_number(board, device, 1), device_number(board, device, 2)};

	memcpy(ret_uuid, halves, sizeof(halves));
	/* Version 4, variant 1, as UUIDs made of random bits say of themselves. */
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x40);
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80);
}

void board_pci(const struct board *board, int device, unsigned int *ret_bus, unsigned int *ret_slot)
{
	*ret_bus = (unsigned int)(board->pci_bus_first + device * board->pci_bus_step);
	*ret_slot = (unsigned int)(board->pci_slot_first + device * board->pci_slot_step);
}

uint64_t board_serial(const struct board *board, int device)
{
	return 1650000000000ull + device_number(board, device, 3) % 100000000000ull;
}

int board_minor(const struct board *board, int device)
{
	return (board->minor_first + device) % board->device_count;
}

int board_numa_node(const struct board *board, int device)
{
	return device * board->numa_nodes / board->device_count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of cards are called. */
#include <string.h>

#include "sim/machine/mig.h"

void mig_uuid(const struct board *board, int device, unsigned int id, unsigned int compute,
	uint8_t ret_uuid[16])
{
	board_uuid(board, device * 65536 + 4096 + (int)(id * 16 + compute), ret_uuid);
	/* Version 5, as UUIDs made of another one say of themselves. */
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x50);
}

void mig_uuid_text(const struct board *board, int device, unsigned int id, unsigned int compute,
	char ret_text[MACHINE_UUID_SIZE])
{
	uint8_t uuid[16];

	mig_uuid(board, device, id, compute, uuid);
	machine_uuid_text(uuid, ret_text);
	memcpy(ret_text, "MIG", 3);
}

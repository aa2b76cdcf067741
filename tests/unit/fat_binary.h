/* SPDX-License-Identifier: Apache-2.0 */
/* A fat binary, as NVIDIA's compiler writes it, with one PTX text that is not compressed. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FAT_TEXT_BYTES 8192

struct fat_binary {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t bytes;
	uint16_t kind, entry_version;
	uint32_t entry_head_bytes;
	uint64_t text_bytes; /* whole words */
	uint32_t compressed_bytes, options;
	uint16_t minor, major;
	uint32_t architecture, name_at, name_bytes;
	uint64_t flags, unused, plain_bytes;
	uint32_t options_of_ptxas,
		no_options[3]; /* where the text of these begins in the head: an empty one */
	char text[FAT_TEXT_BYTES];
};
#define FAT_HEAD_BYTES	16
#define FAT_ENTRY_BYTES 80
#define FAT_PTX		1
#define FAT_FLAGS	0x11 /* of 64 bits, for Linux */

static inline void fat_binary_make(struct fat_binary *fat, const char *text)
{
	_Static_assert(
		offsetof(struct fat_binary, text) == FAT_HEAD_BYTES + FAT_ENTRY_BYTES, "its heads");
	*fat = (struct fat_binary){.magic = 0xba55ed50,
		.version = 1,
		.head_bytes = FAT_HEAD_BYTES,
		.kind = FAT_PTX,
		.entry_version = 0x101,
		.entry_head_bytes = FAT_ENTRY_BYTES,
		.text_bytes = strlen(text) / 8 * 8 + 8,
		.options = offsetof(struct fat_binary, options_of_ptxas) - FAT_HEAD_BYTES,
		.options_of_ptxas = offsetof(struct fat_binary, no_options[1]) - FAT_HEAD_BYTES,
		.major = 7,
		.architecture = 70,
		.flags = FAT_FLAGS};
	fat->bytes = FAT_ENTRY_BYTES + fat->text_bytes;
	strncpy(fat->text, text, sizeof(fat->text) - 1);
}

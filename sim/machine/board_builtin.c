/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in boards are the files of sim/boards, put into the binary by the assembler: no generator
 * is needed to build, and what `vgpu-sim boards` prints can be saved, changed and loaded.
 */
#include "sim/machine/board_builtin.h"

#include <stdio.h>
#include <string.h>

#include "sim/machine/board.h"

/* clang-format off */
#define BUILTINS(X) \
	X(h200x2, "h200x2") \
	X(h200, "h200") \
	X(h200x8, "h200x8") \
	X(h200nvlx4, "h200nvlx4") \
	X(h100, "h100") \
	X(h100x8, "h100x8") \
	X(a100_40, "a100-40") \
	X(a100_80, "a100-80") \
	X(a100x16, "a100x16") \
	X(l4x4, "l4x4") \
	X(t4, "t4")
#define EMBED(symbol, name) \
	__asm__(".pushsection .rodata\n" \
		".global board_text_" #symbol "\n" \
		".hidden board_text_" #symbol "\n" \
		"board_text_" #symbol ":\n" \
		".incbin \"sim/boards/" name ".board\"\n" \
		".byte 0\n" \
		".popsection\n"); \
	extern const char board_text_##symbol[] __attribute__((visibility("hidden")));
/* clang-format on */
BUILTINS(EMBED)

static const struct builtin {
	const char *name;
	const char *text;
} builtins[] = {
#define ROW(symbol, name) {name, board_text_##symbol},
	BUILTINS(ROW)
#undef ROW
};
#define BUILTIN_COUNT (sizeof(builtins) / sizeof(builtins[0]))

const char *board_builtin_name(unsigned int i)
{
	return i < BUILTIN_COUNT ? builtins[i].name : NULL;
}

const char *board_builtin_text(unsigned int i)
{
	return i < BUILTIN_COUNT ? builtins[i].text : NULL;
}

const char *board_builtin_find(const char *name)
{
	for (size_t i = 0; i < BUILTIN_COUNT; i++)
		if (!strcmp(builtins[i].name, name))
			return builtins[i].text;
	return NULL;
}

const char *board_builtin_names(char *buffer, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < BUILTIN_COUNT && used < size; i++)
		used += (size_t)snprintf(
			buffer + used, size - used, "%s%s", i ? ", " : "", builtins[i].name);
	return buffer;
}

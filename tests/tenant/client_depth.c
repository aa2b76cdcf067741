/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's measure of how much of its thread's stack a command takes. */
#include "tests/tenant/client.h"

#include <string.h>

#define PAINTED_BYTES (256u << 10)
#define PAINT	      0xa5

/* Paints the stack below its caller's, and says where that begins. */
__attribute__((noinline)) static uintptr_t paint(void)
{
	unsigned char room[PAINTED_BYTES];
	uintptr_t at = (uintptr_t)room;

	memset(room, PAINT, sizeof(room));
	/* the compiler knows neither that nobody reads it nor that it is what is returned */
	__asm__ volatile("" : "+r"(at) : : "memory");
	return at;
}

static size_t count_spoilt(uintptr_t room)
{
	const volatile unsigned char *at = (const volatile unsigned char *)room;
	size_t plain = 0;

	while (plain < PAINTED_BYTES && at[plain] == PAINT)
		plain++;
	return PAINTED_BYTES - plain;
}

/* depth: answers what the command answers, and the bytes of stack that it has written to */
static int run_depth(struct client *c, char **word, unsigned count)
{
	uintptr_t room = paint();
	int r = client_run(c, word + 1, count - 1);
	size_t depth = count_spoilt(room);

	client_say(c, " depth=%zu", depth);
	return r;
}

const struct client_command client_depth_commands[] = {
	{"depth", 1, run_depth, "COMMAND..."},
	{0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu top: which key was pressed. */
#include "cli/top.h"

#define ESCAPE 0x1b

static unsigned plain_key(unsigned char byte)
{
	switch (byte) {
	case 'q':
		return TOP_KEY_QUIT;
	case 'h':
	case '?':
		return TOP_KEY_HELP;
	case '+':
	case '=': /* the same key without shift */
		return TOP_KEY_MORE;
	case '-':
		return TOP_KEY_LESS;
	case 's':
		return TOP_KEY_SUSPEND;
	case 'k':
		return TOP_KEY_UP;
	case 'j':
		return TOP_KEY_DOWN;
	case 'n':
		return TOP_KEY_SORT + TOP_BY_NAME;
	case 'm':
		return TOP_KEY_SORT + TOP_BY_MEMORY;
	case 'c':
		return TOP_KEY_SORT + TOP_BY_COMPUTE;
	case 'w':
		return TOP_KEY_SORT + TOP_BY_WAIT;
	case 't':
		return TOP_KEY_SORT + TOP_BY_TURN;
	case 'l':
		return TOP_KEY_SORT + TOP_BY_LAUNCHES;
	case 'r':
		return TOP_KEY_SORT + TOP_BY_REFUSALS;
	default:
		return TOP_KEY_NONE;
	}
}

/* Arrows are ESC [ A or ESC O A; other sequences end with a letter or ~, and mean nothing here. */
unsigned top_key(struct top_keys *keys, unsigned char byte)
{
	switch (keys->at) {
	case TOP_KEYS_ESCAPE:
		keys->at = byte == '[' || byte == 'O' ? TOP_KEYS_SEQUENCE : TOP_KEYS_PLAIN;
		return TOP_KEY_NONE;
	case TOP_KEYS_SEQUENCE:
		if (byte >= '@' && byte <= '~')
			keys->at = TOP_KEYS_PLAIN;
		if (byte == ESCAPE)
			keys->at = TOP_KEYS_ESCAPE;
		return byte == 'A' ? TOP_KEY_UP : byte == 'B' ? TOP_KEY_DOWN : TOP_KEY_NONE;
	default:
		if (byte == ESCAPE) {
			keys->at = TOP_KEYS_ESCAPE;
			return TOP_KEY_NONE;
		}
		return plain_key(byte);
	}
}

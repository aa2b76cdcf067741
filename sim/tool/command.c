/* SPDX-License-Identifier: Apache-2.0 */
/* What the help says of each command. */
#include "sim/tool/command.h"

#include <stddef.h>

static const struct command commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary},
#include "sim/tool/command.def"
};

const struct command *command_at(unsigned int i)
{
	return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] : NULL;
}

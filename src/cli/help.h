/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from the table of commands. */
#pragma once

#include "cli/command.h"

/* NULL where there is no such command. An entry without a name ends the commands. */
const struct command *help_find(const struct command *commands, const char *name);

/* The answer to `vgpu help ...`. 0, or COMMAND_E_USAGE with err set. */
int help_show(const struct command *commands, int argc, char **argv, struct err *err) MUST_CHECK;

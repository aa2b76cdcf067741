/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of vgpu-sim and what they share. */
#pragma once

#include <stdint.h>

#include "sim/machine/machine.h"

enum {
	TOOL_OK = 0,
	TOOL_FAILED = 1,
	TOOL_USAGE = 2, /* the command line was wrong */
};

struct command {
	const char *name;
	const char *arguments;
	const char *summary;
};

/* Row i of the table, or NULL after the last. */
const struct command *command_at(unsigned int i);

/* Each in command_<name>.c: argv[0] is the command's name. Returns a TOOL_ value. */
#define COMMAND(name, arguments, summary) int command_##name(int argc, char **argv);
#include "sim/tool/command.def"

/*
 * Attaches to the machine (made with the default board if there is none) or says why not on stderr.
 * Returns a TOOL_ value. tool_close() is the other half, for cleanup.
 */
int tool_open(struct machine **ret_machine);
void tool_close(struct machine **machine);

/* A snapshot, to be freed, or NULL after a sentence on stderr. */
struct machine_snapshot *tool_read_snapshot(struct machine *machine);

/* A sentence on stderr, with the program's and the command's name before it. Returns `result`. */
int tool_complain(const char *command, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Bytes as a person reads them: "518.0 MiB". The buffer is returned. */
#define TOOL_BYTES_SIZE 32
const char *tool_bytes(uint64_t bytes, char buffer[TOOL_BYTES_SIZE]);

/* Prints a JSON string, quotes included. */
void tool_print_json_text(const char *text);

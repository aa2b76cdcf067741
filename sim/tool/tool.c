/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/tool/command.h"

int tool_complain(const char *command, int result, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "vgpu-sim %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return result;
}

int tool_open(struct machine **ret_machine)
{
	char why[512] = "";
	int r = machine_open(NULL, NULL, ret_machine, why, sizeof(why));

	if (!r)
		return TOOL_OK;
	fprintf(stderr, "vgpu-sim: %s\n", *why ? why : strerror(r < 0 ? -r : 0));
	return TOOL_FAILED;
}

void tool_close(struct machine **machine)
{
	machine_close(*machine);
}

struct machine_snapshot *tool_read_snapshot(struct machine *machine)
{
	struct machine_snapshot *snapshot = malloc(sizeof(*snapshot));
	int r = snapshot ? machine_read_snapshot(machine, UINT64_C(1000000000), snapshot) : 0;

	if (snapshot && !r)
		return snapshot;
	fprintf(stderr, "vgpu-sim: the machine cannot be read: %s\n",
		snapshot ? strerror(r < 0 ? -r : 0) : "out of memory");
	free(snapshot);
	return NULL;
}

const char *tool_bytes(uint64_t bytes, char buffer[TOOL_BYTES_SIZE])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	unsigned int unit = 0;
	double amount = (double)bytes;

	while (amount >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		amount /= 1024;
		unit++;
	}
	snprintf(buffer, TOOL_BYTES_SIZE, unit ? "%.1f %s" : "%.0f %s", amount, units[unit]);
	return buffer;
}

void tool_print_json_text(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

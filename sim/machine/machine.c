/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to a machine and leaving it. */
#include "sim/machine/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/machine/event.h"
#include "sim/machine/inject.h"
#include "sim/machine/presence.h"
#include "sim/machine/state_file.h"

const char *machine_kind_name(enum machine_kind kind)
{
	static const char *const names[MACHINE_KINDS_USED] = {
		[MACHINE_INIT] = "init",
		[MACHINE_CONTEXT] = "context",
		[MACHINE_CONTEXT_EXTRA] = "context_extra",
		[MACHINE_STREAM] = "stream",
		[MACHINE_SMALL] = "small",
		[MACHINE_PLAIN] = "plain",
		[MACHINE_MANAGED] = "managed",
		[MACHINE_VMM] = "vmm",
		[MACHINE_POOL] = "pool",
		[MACHINE_MODULE] = "module",
		[MACHINE_ARRAY] = "array",
		[MACHINE_GRAPH] = "graph",
		[MACHINE_LOCAL] = "local",
	};

	return kind < MACHINE_KINDS_USED ? names[kind] : "unknown";
}

void machine_uuid_text(const uint8_t uuid[16], char ret_text[MACHINE_UUID_SIZE])
{
	int n = snprintf(ret_text, MACHINE_UUID_SIZE, "GPU-");

	for (int i = 0; i < 16; i++)
		n += snprintf(ret_text + n, (size_t)(MACHINE_UUID_SIZE - n), "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* Where the state is: at `path`, or where machine_state_path() says. */
static int name_file(struct machine *machine, const char *path)
{
	size_t size = sizeof(machine->path);

	if (!path)
		return machine_state_path(machine->path, size);
	return (size_t)snprintf(machine->path, size, "%s", path) < size ? 0 : -ENAMETOOLONG;
}

int machine_open(const char *path, const char *board_name, struct machine **ret_machine,
	char *ret_why, size_t why_size)
{
	const struct state_file_why why = {ret_why, why_size};
	struct machine *machine = calloc(1, sizeof(*machine));
	int r;

	if (why_size > 0)
		ret_why[0] = '\0';
	if (!machine)
		return -ENOMEM;
	machine->slot = -1;
	r = name_file(machine, path);
	if (r)
		snprintf(ret_why, why_size, "attach '%s': %s", machine->path, strerror(-r));
	else
		r = state_file_attach(machine, board_name, &why);
	if (r) {
		free(machine);
		return r;
	}
	*ret_machine = machine;
	return 0;
}

void machine_close(struct machine *machine)
{
	if (!machine)
		return;
	machine_leave(machine);
	munmap(machine->layout, sizeof(*machine->layout));
	free(machine);
}

void machine_reset(struct machine *machine)
{
	machine_reset_peaks(machine);
	inject_clear_rules(machine);
	inject_clear_kernels(machine);
	inject_clear_counts(machine);
	event_clear(machine);
	presence_clear(machine);
}

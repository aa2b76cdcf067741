/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of slices on the simulated node have in common. Included once, behind cmocka.h. */
#pragma once

#include <stdlib.h>

#include "tests/cli/tool.h"

/* How much of the device's time is used is not the same each time, nor whether it is metered. */
#define PART "(-|[0-9.]+[^ 0-9a-zA-Z.]) "
#define USED "sed -E 's/ " PART "?(evicted|suspended) / \\2 /; s/ " PART "/ - /'"

static inline int sim_set_up(void **state)
{
	int r = tool_set_up(state);

	unsetenv("VGPU_LIBDIR");
	unsetenv("LD_LIBRARY_PATH");
	setenv("VGPU_SIM_STATE", tool_path("machine"), 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	return r;
}

/*
 * The slice "busy" with a tenant that holds 1.8 GiB of device 0 until its vgpu is ended; in between a shell
 * does what is said. What it sees of the machine: TRUTH is what the driver holds for all.
 */
#define TRUTH	 "\"$VGPU_SIM\" truth | awk '/^.none.  *0/ { print $4 $5 }'"
#define LIST	 "\"$VGPU\" list | tr -s ' ' | tail -n 1 | " USED
#define BUSY_ROW "\"$VGPU\" list | tr -s ' ' | grep ^busy | " USED

/* Until a program has said to its file that it holds what it has. */
#define HOLDS(file)                                                                   \
	"tries=0; until grep -q holding \"$HERE/" file "\" || [ $tries = 1500 ]; do " \
	"sleep 0.02; tries=$((tries + 1)); done\n"

static inline const struct said *sim_beside_a_tenant(const char *script)
{
	return tool_run(
		": >\"$HERE/tenant\"; \"$VGPU\" run --sim --memory 2g --device 0 "
		"--name busy -- \"$TENANT\" --hold 60000 >\"$HERE/tenant\" & first=$!\n" HOLDS(
			"tenant") "%s\nkill $first; wait $first",
		script);
}

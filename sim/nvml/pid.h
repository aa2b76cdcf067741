/* SPDX-License-Identifier: Apache-2.0 */
/* The PID under which this process sees another, which may live in a PID namespace of its own. */
#pragma once

#include <stdint.h>

#include "sim/machine/machine.h"

/*
 * The PID of `process` as the calling process would see it, or 0 when it cannot see it. NVML names
 * processes by the PID namespace of the asker (measured, driver 580): a container sees its own, the
 * host sees all. An older driver (node_is_told("host-pids")) names all by the host's PIDs; nobody in a
 * namespace can tell those, so here they are made up: other numbers than the namespace's, one for each
 * process.
 */
int32_t pid_seen(const struct machine_process *process);

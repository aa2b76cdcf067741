/* SPDX-License-Identifier: Apache-2.0 */
/* Once a minute: the files of pods that are gone are removed. */
#pragma once

#include "base/bits.h"
#include "net/loop.h"
#include "plugin/agent.h"
#include "plugin/cluster/record.h"
#include "plugin/host/prepare.h"

/* All is zero at the start. */
struct collect {
	struct agent *agent;
	const struct prepare_settings *settings;
	struct record record;
	struct loop_timer timer;
};

/* The agent and the settings are the caller's and must live as long. */
void collect_start(
	struct collect *collect, struct agent *agent, const struct prepare_settings *settings);

/* Also of one that was not begun. */
void collect_stop(struct collect *collect);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin and its configuration: begun, begun anew where the files say something else, and ended.
 *
 * Numbers, switches and words change under way, and the kubelet hears of them in the list that it follows. For anything else
 * the plugin is ended and begun again in this process. Files that are not understood change nothing.
 */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "plugin/config/flags.h"

struct life;

/* Begins. The flags must live as long. LIFE_E_CONFIG: the configuration is not understood. -errno with err set. */
enum {
	_LIFE_E_SUCCESS = 0,
	LIFE_E_CONFIG,
};
int life_start(struct loop *loop, const struct flags *flags, struct life **ret_life,
	struct err *err) MUST_CHECK;

/* Reads the files now. */
void life_reload(struct life *life);

/* Whether it goes on; else the loop was stopped, because the plugin could not be begun again. */
bool life_goes_on(const struct life *life);

/* Accepts NULL. */
void life_stop(struct life *life);

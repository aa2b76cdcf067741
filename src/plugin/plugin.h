/* SPDX-License-Identifier: Apache-2.0 */
/* The device plugin as a whole: devices, kubelet and cluster in one loop. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "plugin/config/config.h"

struct plugin;

enum {
	_PLUGIN_E_SUCCESS = 0,
	PLUGIN_E_DEVICES, /* NVML cannot be asked; err is set */
};

/*
 * Begins; the configuration must live as long. Without a node's name or an API server it lists its slices and hands out none.
 * -errno with err set.
 */
int plugin_start(struct loop *loop, const struct config *config, struct plugin **ret_plugin,
	struct err *err) MUST_CHECK;

/* Whether NVML counted a device that could not be read when it began: it is not known, and not watched. */
bool plugin_lacks_devices(const struct plugin *plugin);

/* Whether one of them is there now: the plugin has to begin anew. Takes as long as the driver does. */
bool plugin_finds_more_devices(const struct plugin *plugin);

/* After config_absorb(): kubelet and scheduler are told what is different. -ENOMEM. */
int plugin_refresh(struct plugin *plugin) MUST_CHECK;

/* Accepts NULL. */
void plugin_stop(struct plugin *plugin);

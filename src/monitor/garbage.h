/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders of containers that are gone, where no device plugin of ours has made them.
 *
 * Ours removes what it has made, by its own records. HAMi's leaves that to the monitor.
 */
#pragma once

#include "base/bits.h"
#include "monitor/pods.h"

/*
 * Removes HOOK/containers/<pod UID>_<container> of pods that the node does not have, where nothing was changed in it for five
 * minutes and SHARES has no folder of that name. Does nothing before the pods are known.
 */
void garbage_collect(const char *hook, const char *shares, const struct pod_names *pods);

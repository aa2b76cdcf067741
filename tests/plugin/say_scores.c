/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what the device plugin of this machine would tell the scheduler of how near its devices are to each other. */
#include <stdio.h>

#include "gpu/topology.h"
#include "node/nvml_library.h"
#include "plugin/devices/score.h"

int main(void)
{
	static struct nvml_library library;
	static struct inventory devices;
	static struct topology topology;
	struct err err = ERR_NULL;
	char *text;

	if (nvml_library_open(NULL, &library, &err) ||
		inventory_read(&library.driver, &devices, &err)) {
		fprintf(stderr, "say-scores: %s\n", err.text);
		return 1;
	}
	topology_read(&library.driver, &library.node, &devices, &topology);
	nvml_library_close(&library);
	return score_format(&devices, &topology, &text) || puts(text) < 0;
}

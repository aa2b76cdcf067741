/* SPDX-License-Identifier: Apache-2.0 */
/* The longer forms of vgpu-sim smi: all of each device, and processes with their work. */
#include <stdio.h>

#include "sim/tool/smi.h"

static void print_bytes(const char *name, unsigned long long bytes)
{
	printf("        %-34s: %llu MiB\n", name, bytes >> 20);
}

static void print_processes(const struct smi *smi, const struct smi_device *device)
{
	char name[256];

	printf("    %-38s: %s\n", "Processes", device->process_count ? "" : "None");
	for (unsigned int i = 0; i < device->process_count; i++) {
		const struct smi_process *p = &device->processes[i];

		printf("        %-34s: %u\n", "Process ID", p->pid);
		printf("            %-30s: %s\n", "Type", p->type);
		printf("            %-30s: %s\n", "Name",
			smi_process_name(smi, p->pid, name, sizeof(name)));
		printf("            %-30s: %llu MiB\n", "Used GPU Memory", p->used_bytes >> 20);
	}
}

static void print_device(const struct smi *smi, const struct smi_device *device)
{
	printf("\nGPU %s\n", device->pci.busId);
	printf("    %-38s: %s\n", "Product Name", device->name);
	printf("    %-38s: %s\n", "GPU UUID", device->uuid);
	printf("    %-38s:\n", "FB Memory Usage");
	print_bytes("Total", device->memory.total);
	print_bytes("Reserved", device->memory.reserved);
	print_bytes("Used", device->memory.used);
	print_bytes("Free", device->memory.free);
	printf("    %-38s:\n", "BAR1 Memory Usage");
	print_bytes("Total", device->bar1.bar1Total);
	print_bytes("Used", device->bar1.bar1Used);
	print_bytes("Free", device->bar1.bar1Free);
	printf("    %-38s:\n", "Utilization");
	printf("        %-34s: %u %%\n", "GPU", device->busy_percent);
	printf("    %-38s:\n", "Temperature");
	printf("        %-34s: %u C\n", "GPU Current Temp", device->celsius);
	printf("    %-38s:\n", "GPU Power Readings");
	printf("        %-34s: %.2f W\n", "Instantaneous Power Draw", device->power_mw / 1000.0);
	print_processes(smi, device);
}

void smi_print_full(const struct smi *smi)
{
	printf("%-42s: %s\n", "Driver Version", smi->driver_version);
	printf("%-42s: %d.%d\n", "CUDA Version", smi->cuda_version / 1000,
		smi->cuda_version % 1000 / 10);
	printf("%-42s: %u\n", "Attached GPUs", smi->device_count);
	for (unsigned int i = 0; i < smi->device_count; i++)
		print_device(smi, &smi->device[i]);
}

void smi_print_work(const struct smi *smi)
{
	char name[256];

	printf("# gpu         pid   type     sm    mem    command\n"
	       "# Idx           #    C/G      %%      %%    name\n");
	for (unsigned int i = 0; i < smi->device_count; i++) {
		const struct smi_device *device = &smi->device[i];

		for (unsigned int j = 0; j < device->process_count; j++) {
			const struct smi_process *p = &device->processes[j];

			printf("%5u %11u %6s ", device->index, p->pid, p->type);
			if (p->has_worked)
				printf("%6u %6u", p->sm_percent, p->memory_percent);
			else
				printf("%6s %6s", "-", "-");
			printf("    %s\n", smi_process_name(smi, p->pid, name, sizeof(name)));
		}
		if (!device->process_count)
			printf("%5u %11s %6s %6s %6s    -\n", device->index, "-", "-", "-", "-");
	}
}

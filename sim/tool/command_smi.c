/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim smi: a listing of the devices and their processes, and tables for programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"
#include "sim/tool/smi_table.h"

static unsigned long long mib(unsigned long long bytes)
{
	return bytes >> 20;
}

static void print_short(const struct smi *smi)
{
	for (unsigned int i = 0; i < smi->device_count; i++)
		printf("GPU %u: %s (UUID: %s)\n", smi->device[i].index, smi->device[i].name,
			smi->device[i].uuid);
}

static void print_listing(const struct smi *smi)
{
	unsigned int process_count = 0;
	char name[256];

	printf("driver %s, CUDA %d.%d, %u device%s\n\n", smi->driver_version,
		smi->cuda_version / 1000, smi->cuda_version % 1000 / 10, smi->device_count,
		smi->device_count == 1 ? "" : "s");
	printf("%3s  %-26s %-17s %6s  %22s  %15s  %5s\n", "GPU", "NAME", "BUS", "BUSY",
		"MEMORY USED / TOTAL", "POWER", "TEMP");
	for (unsigned int i = 0; i < smi->device_count; i++) {
		const struct smi_device *device = &smi->device[i];

		printf("%3u  %-26s %-17s %4u %%  %8llu / %7llu MiB  %5u / %5u W  %3u C\n",
			device->index, device->name, device->pci.busId, device->busy_percent,
			mib(device->memory.used), mib(device->memory.total),
			device->power_mw / 1000, device->power_limit_mw / 1000, device->celsius);
		process_count += device->process_count;
	}
	printf(process_count ? "\n%3s  %8s  %11s  %s\n" : "\nno processes\n", "GPU", "PID",
		"MEMORY", "PROCESS");
	for (unsigned int i = 0; i < smi->device_count; i++)
		for (unsigned int j = 0; j < smi->device[i].process_count; j++) {
			const struct smi_process *process = &smi->device[i].processes[j];

			printf("%3u  %8u  %7llu MiB  %s\n", smi->device[i].index, process->pid,
				mib(process->used_bytes),
				smi_process_name(smi, process->pid, name, sizeof(name)));
		}
}

struct request {
	const char *device_query, *process_query, *format;
	bool is_short, is_full, is_work;
	struct smi_table table;
};

/* Returns a TOOL_ value. */
static int read_request(int argc, char **argv, struct request *request)
{
	const struct arg args[] = {
		{.name = "-L", .is_given = &request->is_short},
		{.name = "-q", .is_given = &request->is_full},
		{.name = "--query-gpu", .text = &request->device_query},
		{.name = "--query-compute-apps", .text = &request->process_query},
		{.name = "--format", .text = &request->format},
	};
	int words = ARGS_READ(argc, argv, args, 0, 1);

	if (words < 0)
		return TOOL_USAGE;
	request->is_work = words == 1 && !strcmp(argv[1], "pmon");
	if (words == 1 && !request->is_work)
		return tool_complain(
			"smi", TOOL_USAGE, "unknown word '%s'; there is pmon", argv[1]);
	if (!!request->device_query + !!request->process_query + request->is_short +
			request->is_full + request->is_work >
		1)
		return tool_complain("smi", TOOL_USAGE,
			"-L, -q, pmon, --query-gpu and --query-compute-apps exclude each other");
	if (request->format && !request->device_query && !request->process_query)
		return tool_complain("smi", TOOL_USAGE, "--format needs a query");
	return TOOL_OK;
}

static int read_table(struct request *request)
{
	bool is_of_processes = request->process_query;
	const char *fields = is_of_processes ? request->process_query : request->device_query;

	if (fields && smi_table_read_fields(&request->table, is_of_processes, fields))
		return TOOL_USAGE;
	return smi_table_read_format(&request->table, request->format ? request->format : "csv")
		       ? TOOL_USAGE
		       : TOOL_OK;
}

static void print(const struct request *request, const struct smi *smi)
{
	if (request->table.field_count)
		smi_table_print(&request->table, smi);
	else if (request->is_short)
		print_short(smi);
	else if (request->is_full)
		smi_print_full(smi);
	else if (request->is_work)
		smi_print_work(smi);
	else
		print_listing(smi);
}

int command_smi(int argc, char **argv)
{
	_cleanup_free_ struct smi *smi = malloc(sizeof(*smi));
	struct request request = {0};
	int result = read_request(argc, argv, &request);

	if (result)
		return result;
	if (!smi)
		return tool_complain("smi", TOOL_FAILED, "out of memory");
	result = read_table(&request);
	if (result)
		return result;
	if (smi_read(smi))
		result = TOOL_FAILED;
	else
		print(&request, smi);
	smi_free(smi);
	return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim smi: a listing of the devices and their processes, and tables for programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"
#include "sim/tool/smi.h"

static unsigned long long mib(unsigned long long bytes)
{
	return bytes >> 20;
}

/* One cell of a table: a text, or a number with its unit. */
struct cell {
	char text[256];
	const char *unit;
};

struct row {
	const struct smi *smi;
	const struct smi_device *device;
	const struct smi_process *process; /* NULL in tables of devices */
};

#define CELL(function, unit_text, ...)                                 \
	static void function(const struct row *row, struct cell *cell) \
	{                                                              \
		snprintf(cell->text, sizeof(cell->text), __VA_ARGS__); \
		cell->unit = unit_text;                                \
	}

CELL(cell_index, NULL, "%u", row->device->index)
CELL(cell_uuid, NULL, "%s", row->device->uuid)
CELL(cell_name, NULL, "%s", row->device->name)
CELL(cell_bus, NULL, "%s", row->device->pci.busId)
CELL(cell_driver, NULL, "%s", row->smi->driver_version)
CELL(cell_total, "MiB", "%llu", mib(row->device->memory.total))
CELL(cell_reserved, "MiB", "%llu", mib(row->device->memory.reserved))
CELL(cell_used, "MiB", "%llu", mib(row->device->memory.used))
CELL(cell_free, "MiB", "%llu", mib(row->device->memory.free))
CELL(cell_busy, "%", "%u", row->device->busy_percent)
CELL(cell_celsius, NULL, "%u", row->device->celsius)
CELL(cell_power, "W", "%.2f", row->device->power_mw / 1000.0)
CELL(cell_limit, "W", "%.2f", row->device->power_limit_mw / 1000.0)
CELL(cell_pid, NULL, "%u", row->process->pid)
CELL(cell_used_memory, "MiB", "%llu", mib(row->process->used_bytes))

static void cell_process_name(const struct row *row, struct cell *cell)
{
	smi_process_name(row->smi, row->process->pid, cell->text, sizeof(cell->text));
	cell->unit = NULL;
}

struct field {
	const char *name;
	const char *unit; /* in the heading */
	void (*fill)(const struct row *row, struct cell *cell);
};

static const struct field device_fields[] = {
	{"index", NULL, cell_index},
	{"uuid", NULL, cell_uuid},
	{"name", NULL, cell_name},
	{"pci.bus_id", NULL, cell_bus},
	{"driver_version", NULL, cell_driver},
	{"memory.total", "MiB", cell_total},
	{"memory.reserved", "MiB", cell_reserved},
	{"memory.used", "MiB", cell_used},
	{"memory.free", "MiB", cell_free},
	{"utilization.gpu", "%", cell_busy},
	{"temperature.gpu", NULL, cell_celsius},
	{"power.draw", "W", cell_power},
	{"power.limit", "W", cell_limit},
	{NULL, NULL, NULL},
};

static const struct field process_fields[] = {
	{"pid", NULL, cell_pid},
	{"process_name", NULL, cell_process_name},
	{"used_memory", "MiB", cell_used_memory},
	{"gpu_uuid", NULL, cell_uuid},
	{"gpu_name", NULL, cell_name},
	{"gpu_bus_id", NULL, cell_bus},
	{NULL, NULL, NULL},
};

#define TABLE_FIELDS_MAX 32

struct table {
	const struct field *field[TABLE_FIELDS_MAX];
	unsigned int field_count;
	bool has_header;
	bool has_units;
};

static const struct field *find_field(const struct field *fields, const char *name, size_t length)
{
	for (; fields->name; fields++)
		if (strlen(fields->name) == length && !strncmp(fields->name, name, length))
			return fields;
	return NULL;
}

/* Says which fields there are. */
static int complain_of_field(const struct field *fields, const char *name, size_t length)
{
	tool_complain("smi", 0, "unknown field '%.*s'; there are:", (int)length, name);
	for (; fields->name; fields++)
		fprintf(stderr, " %s", fields->name);
	fputc('\n', stderr);
	return -1;
}

static int table_read_fields(struct table *table, const struct field *fields, const char *text)
{
	while (*text) {
		size_t length;

		text += strspn(text, ", ");
		length = strcspn(text, ", ");
		if (!length)
			break;
		if (table->field_count == TABLE_FIELDS_MAX)
			return tool_complain("smi", -1, "more than %d fields", TABLE_FIELDS_MAX);
		table->field[table->field_count] = find_field(fields, text, length);
		if (!table->field[table->field_count])
			return complain_of_field(fields, text, length);
		table->field_count++;
		text += length;
	}
	return table->field_count ? 0 : tool_complain("smi", -1, "no fields are named");
}

static int table_read_format(struct table *table, const char *text)
{
	bool is_csv = false;

	table->has_header = true;
	table->has_units = true;
	while (*text) {
		size_t length;

		text += strspn(text, ", ");
		length = strcspn(text, ", ");
		if (length == 3 && !strncmp(text, "csv", length))
			is_csv = true;
		else if (length == 8 && !strncmp(text, "noheader", length))
			table->has_header = false;
		else if (length == 7 && !strncmp(text, "nounits", length))
			table->has_units = false;
		else if (length)
			return tool_complain("smi", -1,
				"--format: unknown word '%.*s'; there are: csv noheader nounits",
				(int)length, text);
		text += length;
	}
	return is_csv ? 0 : tool_complain("smi", -1, "--format must name csv");
}

static void table_print_header(const struct table *table)
{
	for (unsigned int i = 0; table->has_header && i < table->field_count; i++) {
		printf("%s%s", i ? ", " : "", table->field[i]->name);
		if (table->has_units && table->field[i]->unit)
			printf(" [%s]", table->field[i]->unit);
	}
	if (table->has_header)
		putchar('\n');
}

static void table_print_row(const struct table *table, const struct row *row)
{
	for (unsigned int i = 0; i < table->field_count; i++) {
		struct cell cell;

		table->field[i]->fill(row, &cell);
		printf("%s%s", i ? ", " : "", cell.text);
		if (table->has_units && cell.unit)
			printf(" %s", cell.unit);
	}
	putchar('\n');
}

static void print_devices(const struct table *table, const struct smi *smi)
{
	table_print_header(table);
	for (unsigned int i = 0; i < smi->device_count; i++)
		table_print_row(table, &(struct row){.smi = smi, .device = &smi->device[i]});
}

static void print_processes(const struct table *table, const struct smi *smi)
{
	table_print_header(table);
	for (unsigned int i = 0; i < smi->device_count; i++)
		for (unsigned int j = 0; j < smi->device[i].process_count; j++)
			if (strcmp(smi->device[i].processes[j].type, "G") != 0)
				table_print_row(
					table, &(struct row){.smi = smi,
						       .device = &smi->device[i],
						       .process = &smi->device[i].processes[j]});
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
	struct table table;
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
	struct table *table = &request->table;
	const char *format = request->format ? request->format : "csv";

	if (request->device_query && table_read_fields(table, device_fields, request->device_query))
		return TOOL_USAGE;
	if (request->process_query &&
		table_read_fields(table, process_fields, request->process_query))
		return TOOL_USAGE;
	return table_read_format(table, format) ? TOOL_USAGE : TOOL_OK;
}

static void print(const struct request *request, const struct smi *smi)
{
	if (request->device_query)
		print_devices(&request->table, smi);
	else if (request->process_query)
		print_processes(&request->table, smi);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for programs: one row a device, or one a process. */
#include "sim/tool/smi_table.h"

#include <stdio.h>
#include <string.h>

#include "sim/tool/command.h"

struct row {
	const struct smi *smi;
	const struct smi_device *device;
	const struct smi_process *process; /* NULL in tables of devices */
};

#define CELL_SIZE 256
typedef void fill_fn(const struct row *row, char ret_text[CELL_SIZE]);

struct smi_field {
	const char *name;
	const char *unit; /* NULL: none */
	fill_fn *fill;
};

#define CELL(function, ...)                                               \
	static void function(const struct row *row, char text[CELL_SIZE]) \
	{                                                                 \
		snprintf(text, CELL_SIZE, __VA_ARGS__);                   \
	}

CELL(cell_index, "%u", row->device->index)
CELL(cell_uuid, "%s", row->device->uuid)
CELL(cell_name, "%s", row->device->name)
CELL(cell_bus, "%s", row->device->pci.busId)
CELL(cell_driver, "%s", row->smi->driver_version)
CELL(cell_total, "%llu", row->device->memory.total >> 20)
CELL(cell_reserved, "%llu", row->device->memory.reserved >> 20)
CELL(cell_used, "%llu", row->device->memory.used >> 20)
CELL(cell_free, "%llu", row->device->memory.free >> 20)
CELL(cell_busy, "%u", row->device->busy_percent)
CELL(cell_celsius, "%u", row->device->celsius)
CELL(cell_power, "%.2f", row->device->power_mw / 1000.0)
CELL(cell_limit, "%.2f", row->device->power_limit_mw / 1000.0)
CELL(cell_pid, "%u", row->process->pid)
CELL(cell_used_memory, "%llu", row->process->used_bytes >> 20)

static void cell_process_name(const struct row *row, char text[CELL_SIZE])
{
	smi_process_name(row->smi, row->process->pid, text, CELL_SIZE);
}

static const struct smi_field device_fields[] = {
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
	{0},
};

static const struct smi_field process_fields[] = {
	{"pid", NULL, cell_pid},
	{"process_name", NULL, cell_process_name},
	{"used_memory", "MiB", cell_used_memory},
	{"gpu_uuid", NULL, cell_uuid},
	{"gpu_name", NULL, cell_name},
	{"gpu_bus_id", NULL, cell_bus},
	{0},
};

static const struct smi_field *find_field(
	const struct smi_field *fields, const char *name, size_t length)
{
	for (; fields->name; fields++)
		if (strlen(fields->name) == length && !strncmp(fields->name, name, length))
			return fields;
	return NULL;
}

/* Says which fields there are. */
static int complain_of_field(const struct smi_field *fields, const char *name, size_t length)
{
	tool_complain("smi", 0, "unknown field '%.*s'; there are:", (int)length, name);
	for (; fields->name; fields++)
		fprintf(stderr, " %s", fields->name);
	fputc('\n', stderr);
	return -1;
}

int smi_table_read_fields(struct smi_table *table, bool is_of_processes, const char *text)
{
	const struct smi_field *fields = is_of_processes ? process_fields : device_fields;

	table->is_of_processes = is_of_processes;
	while (*text) {
		size_t length;

		text += strspn(text, ", ");
		length = strcspn(text, ", ");
		if (!length)
			break;
		if (table->field_count == SMI_TABLE_FIELDS_MAX)
			return tool_complain(
				"smi", -1, "more than %d fields", SMI_TABLE_FIELDS_MAX);
		table->field[table->field_count] = find_field(fields, text, length);
		if (!table->field[table->field_count])
			return complain_of_field(fields, text, length);
		table->field_count++;
		text += length;
	}
	return table->field_count ? 0 : tool_complain("smi", -1, "no fields are named");
}

int smi_table_read_format(struct smi_table *table, const char *text)
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

static void print_header(const struct smi_table *table)
{
	for (unsigned int i = 0; table->has_header && i < table->field_count; i++) {
		printf("%s%s", i ? ", " : "", table->field[i]->name);
		if (table->has_units && table->field[i]->unit)
			printf(" [%s]", table->field[i]->unit);
	}
	if (table->has_header)
		putchar('\n');
}

static void print_row(const struct smi_table *table, const struct row *row)
{
	for (unsigned int i = 0; i < table->field_count; i++) {
		const struct smi_field *field = table->field[i];
		char text[CELL_SIZE];

		field->fill(row, text);
		printf("%s%s", i ? ", " : "", text);
		if (table->has_units && field->unit)
			printf(" %s", field->unit);
	}
	putchar('\n');
}

/* Graphics is no compute. */
static void print_processes(
	const struct smi_table *table, const struct smi *smi, const struct smi_device *device)
{
	for (unsigned int i = 0; i < device->process_count; i++) {
		const struct row row = {smi, device, &device->processes[i]};

		if (strcmp(row.process->type, "G"))
			print_row(table, &row);
	}
}

void smi_table_print(const struct smi_table *table, const struct smi *smi)
{
	print_header(table);
	for (unsigned int i = 0; i < smi->device_count; i++) {
		const struct row row = {.smi = smi, .device = &smi->device[i]};

		if (table->is_of_processes)
			print_processes(table, smi, row.device);
		else
			print_row(table, &row);
	}
}

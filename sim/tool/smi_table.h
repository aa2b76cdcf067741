/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for programs: one row a device, or one a process, of the fields that were asked for. */
#pragma once

#include <stdbool.h>

#include "sim/tool/smi.h"

#define SMI_TABLE_FIELDS_MAX 32

struct smi_field;

struct smi_table {
	const struct smi_field *field[SMI_TABLE_FIELDS_MAX];
	unsigned int field_count;
	bool is_of_processes;
	bool has_header;
	bool has_units;
};

/* Reads names of fields, with commas or spaces between. Returns 0, or -1 after a sentence on stderr. */
int smi_table_read_fields(struct smi_table *table, bool is_of_processes, const char *text);
/* Reads a format, "csv,noheader,nounits". Returns 0, or -1 after a sentence on stderr. */
int smi_table_read_format(struct smi_table *table, const char *text);

void smi_table_print(const struct smi_table *table, const struct smi *smi);

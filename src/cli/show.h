/* SPDX-License-Identifier: Apache-2.0 */
/* Views on standard output: as tables for people, as JSON for programs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "node/view.h"

/* A row for each slice and device; with processes, one for each process and device instead. */
void show_table(const struct view *views, size_t count, bool with_processes);

/* By enum charge_kind. */
extern const char *const show_kind_names[];

/* A member "devices", the same in every command. */
void show_json_devices(const struct view *view);

/* One object; its keys only ever become more. Sizes are bytes, and what is not known is null. */
void show_json(const struct view *views, size_t count);

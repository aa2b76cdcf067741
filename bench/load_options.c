/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/compute_load.c is told; its head lists it. */
#include "bench/load_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const shape_names[] = {
	"stream", "streams4", "graph", "coop", "sync", "periodic", "train", "calibrate", "cost"};

struct load_options load_option = {.duration_us = 200,
	.graph = 20,
	.burst = 20,
	.period_us = 5000,
	.ahead_us = 20000,
	.bin_us = 1000,
	.host_us = 12,
	.pause_us = 400,
	.jitter = 5,
	.seconds = 3};

static bool read_shape(const char *text)
{
	for (unsigned i = 0; i < sizeof(shape_names) / sizeof(shape_names[0]); i++) {
		if (strcmp(text, shape_names[i]) == 0) {
			load_option.shape = (enum load_shape)i;
			return true;
		}
	}
	return false;
}

const char *load_shape_name(void)
{
	return shape_names[load_option.shape];
}

bool load_option_read(const char *text)
{
	const struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {{"duration_us", &load_option.duration_us}, {"blocks", &load_option.blocks},
		{"graph", &load_option.graph}, {"burst", &load_option.burst},
		{"period_us", &load_option.period_us}, {"ahead_us", &load_option.ahead_us},
		{"bin_us", &load_option.bin_us}, {"host_us", &load_option.host_us},
		{"each", &load_option.each}, {"jitter", &load_option.jitter},
		{"copy_kib", &load_option.copy_kib}};
	const char *value = strchr(text, '=');
	size_t length;

	if (value == NULL)
		return false;
	length = (size_t)(value++ - text);
	if (length == 5 && strncmp(text, "shape", length) == 0)
		return read_shape(value);
	if (length == 4 && strncmp(text, "wait", length) == 0) {
		load_option.wait = value;
		return true;
	}
	if (length == 4 && strncmp(text, "rate", length) == 0) {
		load_option.rate = strtod(value, NULL);
		return true;
	}
	if (length == 7 && strncmp(text, "seconds", length) == 0) {
		load_option.seconds = strtod(value, NULL);
		return true;
	}
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strlen(numbers[i].name) == length &&
			strncmp(text, numbers[i].name, length) == 0) {
			*numbers[i].number = strtoull(value, NULL, 10);
			return true;
		}
	}
	return false;
}

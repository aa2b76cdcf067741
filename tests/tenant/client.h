/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client: a CUDA program that does what it is told, one line of input at a time, and
 * answers each with one line: the driver's result as a number, and what else there is to say.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/tenant/door.h"

#define CLIENT_NAMES 4096
#define CLIENT_EXTRA 4096

/* The client's own results, beside the driver's. */
#define CLIENT_BAD_COMMAND 9001
#define CLIENT_NO_NAME	   9002
#define CLIENT_FAILED	   9003

struct client_value {
	char name[24];
	uint64_t value;
};

/* The function or kernel "k" of a module or library. */
struct client_function {
	uintptr_t image, function;
};
#define CLIENT_FUNCTIONS 64

struct client {
	struct door cu;
	enum door_kind door;
	CUdevice device; /* of the last "primary" or "newctx" */
	char **argv;
	struct client_value values[CLIENT_NAMES];
	unsigned value_count;
	CUdeviceptr *filled; /* of "fill", to be dropped together */
	size_t filled_count, filled_room;
	struct client_function functions[CLIENT_FUNCTIONS];
	unsigned function_count;
	char extra[CLIENT_EXTRA];
};

/* One word of the language. word[0] is its name; the others are checked by count. */
struct client_command {
	const char *name;
	unsigned words; /* least number of words after the name */
	int (*run)(struct client *c, char **word, unsigned count);
	const char *usage;
};

extern const struct client_command client_code_commands[];
extern const struct client_command client_compute_commands[];
extern const struct client_command client_copy_commands[];
extern const struct client_command client_depth_commands[];
extern const struct client_command client_launch_commands[];
extern const struct client_command client_array_commands[];
extern const struct client_command client_event_commands[];
extern const struct client_command client_graph_commands[];
extern const struct client_command client_memory_commands[];
extern const struct client_command client_nvml_commands[];
extern const struct client_command client_pressure_commands[];
extern const struct client_command client_process_commands[];
extern const struct client_command client_race_commands[];
extern const struct client_command client_tour_commands[];
extern const struct client_command client_view_commands[];
extern const struct client_command client_old_commands[];
extern const struct client_command client_share_commands[];

/* Bytes as people write them: 5, 4k, 2m, 1g; also sums like 2m+1. Leaves on anything else. */
uint64_t client_size(const char *text);

/* Values by name: what a name stands for, or exit where there is none; and giving one a value. */
uint64_t client_get(struct client *c, const char *name);
void client_put(struct client *c, const char *name, uint64_t value);
void client_forget(struct client *c, const char *name);

/* The stream word number `at`, or the default stream of the door. */
CUstream client_stream(struct client *c, char **word, unsigned count, unsigned at);

/* A function of the driver by name, as an address; leaves where there is none. */
void *client_find(const char *symbol);
/* Whether a driver function that a program finds by this name is the tenant library's. */
bool client_is_replaced(const char *symbol);

/* PTX as the words from number `at` on say (client_code.c); -1 for others. */
#define CLIENT_IMAGE_BYTES 4096
int client_image(char **word, unsigned count, unsigned at, char text[CLIENT_IMAGE_BYTES]);

/* Gives a module or library a name, and finds its kernel; and what was found. */
int client_module(struct client *c, const char *name, CUmodule module);
int client_library(struct client *c, const char *name, CUlibrary library);
uintptr_t client_function_of(const struct client *c, uintptr_t image);

/* Does one command. */
int client_run(struct client *c, char **word, unsigned count);

/* Adds to the answer. */
void client_say(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keeps a block for "drop". */
void client_keep(struct client *c, CUdeviceptr block);

/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of vgpu plan and vgpu explain. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"
#include "scheduler/settings.h"

#define OPTIONS_LIST 64 /* of each that may be given several times */

struct options_list {
	const char *at[OPTIONS_LIST];
	size_t count;
};

struct options {
	bool is_explain;
	struct options_list nodes, pods, added, drained;
	const char *kubeconfig, *context, *namespace;
	const char *pod; /* of explain */
	bool with_scores, is_json;
	const char *words[16]; /* what the scheduler's settings are read from */
	int word_count;
	struct settings settings;
};

/* argv[0] is the command: "plan" or "explain". The arguments must live as long. -EINVAL with err set; -ENOMEM. */
int options_read(int argc, char **argv, struct options *ret_options, struct err *err) MUST_CHECK;

/* Accepts what is all zero. */
void options_deinit(struct options *options);

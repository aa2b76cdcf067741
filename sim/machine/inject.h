/* SPDX-License-Identifier: Apache-2.0 */
/* Faults and delays put into the simulated driver from outside, and counts of its calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/call.h"
#include "sim/machine/machine.h"

#define INJECT_RULES_MAX	64
#define INJECT_KERNELS_MAX	64
#define INJECT_KERNEL_NAME_SIZE 128

/* What to do to calls of one function. */
struct inject_rule {
	char symbol[64];	    /* exported name, e.g. "cuMemAlloc_v2" */
	char tag[MACHINE_TAG_SIZE]; /* only processes of this tag; "*" for all */
	uint64_t skip;		    /* let so many matching calls pass first */
	uint64_t times;		    /* then act on so many; 0: on all */
	int32_t result;		    /* return this instead of doing the call; 0: do the call */
	uint64_t delay_ns;	    /* sleep before */
};

/* Adds a rule. Returns its number >= 0, -ENOENT (unknown function) or -ENOSPC. */
int inject_add_rule(struct machine *machine, const struct inject_rule *rule);
/* Reads rule `index` (< INJECT_RULES_MAX) and how often it acted. -ENOENT when there is none. */
int inject_read_rule(struct machine *machine, unsigned int index, struct inject_rule *ret_rule,
	uint64_t *ret_hits);
void inject_clear_rules(struct machine *machine);

/* Lets every launch of kernels of this name last duration_ns. Returns 0 or -ENOSPC. */
int inject_set_kernel(struct machine *machine, const char *kernel, uint64_t duration_ns);
void inject_clear_kernels(struct machine *machine);
/* Changes whenever a kernel rule does: what was looked up before is stale then. Never 0. */
uint64_t inject_kernel_epoch(const struct machine *machine);
/* The duration set for `kernel`. Returns 0 and *ret_duration_ns, or -ENOENT. */
int inject_find_kernel(struct machine *machine, const char *kernel, uint64_t *ret_duration_ns);

/*
 * From now on each kernel fills its device, so that of a process no two are done at once, as by default those of its streams
 * are. Of processes they never are (schedule.h).
 */
void inject_let_kernels_fill(struct machine *machine);
bool inject_do_kernels_fill(const struct machine *machine);

/* Calls of function `call` so far by all processes of the machine. */
uint64_t inject_read_count(const struct machine *machine, unsigned int call);
void inject_clear_counts(struct machine *machine);

/*
 * For the driver, at the start of each function: counts the call and applies the rules (may sleep).
 * Returns 0 to go on, or the result to return.
 */
int inject_enter(struct machine *machine, unsigned int call);

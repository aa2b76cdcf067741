/* SPDX-License-Identifier: Apache-2.0 */
/* Counting calls of the simulated libraries, and making some of them fail or wait. */
#include "sim/machine/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine/call.h"
#include "sim/machine/state_file.h"

/* Under the lock. */
static void count_rules(struct layout *layout)
{
	uint32_t count = 0;

	for (int i = 0; i < INJECT_RULES_MAX; i++)
		count += layout->rule[i].state;
	/* Relaxed: a call that misses a rule just made came before it. */
	atomic_store_explicit(&layout->rule_count, count, memory_order_relaxed);
}

int inject_add_rule(struct machine *machine, const struct inject_rule *rule)
{
	struct layout *layout = machine->layout;
	int i = 0, call = call_find(rule->symbol);
	struct layout_rule *place;

	if (call < 0)
		return call;
	MACHINE_SCOPE(machine);
	while (i < INJECT_RULES_MAX && layout->rule[i].state)
		i++;
	if (i == INJECT_RULES_MAX)
		return -ENOSPC;
	place = &layout->rule[i];
	*place = (struct layout_rule){.call = (uint32_t)call,
		.result = rule->result,
		.skip = rule->skip,
		.times = rule->times,
		.delay_ns = rule->delay_ns};
	snprintf(place->tag, sizeof(place->tag), "%s", rule->tag);
	layout_fence();
	place->state = 1;
	count_rules(layout);
	return i;
}

int inject_read_rule(struct machine *machine, unsigned int index, struct inject_rule *ret_rule,
	uint64_t *ret_hits)
{
	const struct layout_rule *place;
	const char *symbol;

	if (index >= INJECT_RULES_MAX)
		return -ENOENT;
	MACHINE_SCOPE(machine);
	place = &machine->layout->rule[index];
	symbol = call_name(place->call);
	if (!place->state || !symbol)
		return -ENOENT;
	*ret_rule = (struct inject_rule){.skip = place->skip,
		.times = place->times,
		.result = place->result,
		.delay_ns = place->delay_ns};
	snprintf(ret_rule->symbol, sizeof(ret_rule->symbol), "%s", symbol);
	memcpy(ret_rule->tag, place->tag, sizeof(ret_rule->tag));
	*ret_hits = place->hits;
	return 0;
}

void inject_clear_rules(struct machine *machine)
{
	MACHINE_SCOPE(machine);

	for (int i = 0; i < INJECT_RULES_MAX; i++)
		machine->layout->rule[i].state = 0;
	count_rules(machine->layout);
}

/* Under the lock: the rule for kernels of this name, or NULL. */
static struct layout_kernel *find_kernel(struct layout *layout, const char *name)
{
	for (int i = 0; i < INJECT_KERNELS_MAX; i++) {
		struct layout_kernel *rule = &layout->kernel[i];

		if (rule->duration_ns && !strncmp(rule->name, name, sizeof(rule->name) - 1))
			return rule;
	}
	return NULL;
}

static struct layout_kernel *find_free_kernel(struct layout *layout)
{
	for (int i = 0; i < INJECT_KERNELS_MAX; i++)
		if (!layout->kernel[i].duration_ns)
			return &layout->kernel[i];
	return NULL;
}

/* Relaxed: who sees the new epoch takes the lock before reading rules. */
static void next_epoch(struct layout *layout)
{
	atomic_fetch_add_explicit(&layout->kernel_epoch, 1, memory_order_relaxed);
}

int inject_set_kernel(struct machine *machine, const char *kernel, uint64_t duration_ns)
{
	struct layout *layout = machine->layout;
	struct layout_kernel *place;
	MACHINE_SCOPE(machine);

	place = find_kernel(layout, kernel);
	if (!place)
		place = find_free_kernel(layout);
	if (!place)
		return -ENOSPC;
	snprintf(place->name, sizeof(place->name), "%s", kernel);
	layout_fence();
	/* A duration of 0 means free, so the shortest is 1. */
	place->duration_ns = duration_ns > 0 ? duration_ns : 1;
	next_epoch(layout);
	return 0;
}

void inject_clear_kernels(struct machine *machine)
{
	MACHINE_SCOPE(machine);

	for (int i = 0; i < INJECT_KERNELS_MAX; i++)
		machine->layout->kernel[i].duration_ns = 0;
	next_epoch(machine->layout);
}

uint64_t inject_kernel_epoch(const struct machine *machine)
{
	/* Relaxed: see next_epoch(). */
	return atomic_load_explicit(&machine->layout->kernel_epoch, memory_order_relaxed);
}

int inject_find_kernel(struct machine *machine, const char *kernel, uint64_t *ret_duration_ns)
{
	const struct layout_kernel *rule;
	MACHINE_SCOPE(machine);

	rule = find_kernel(machine->layout, kernel);
	if (!rule)
		return -ENOENT;
	*ret_duration_ns = rule->duration_ns;
	return 0;
}

/* Relaxed, both: who has set it begins programs after that. */
void inject_let_kernels_fill(struct machine *machine)
{
	atomic_store_explicit(&machine->layout->kernels_fill, 1, memory_order_relaxed);
}

bool inject_do_kernels_fill(const struct machine *machine)
{
	return atomic_load_explicit(&machine->layout->kernels_fill, memory_order_relaxed) != 0;
}

/* Relaxed, all three: a count orders nothing. */
uint64_t inject_read_count(const struct machine *machine, unsigned int call)
{
	if (call >= CALLS_MAX)
		return 0;
	return atomic_load_explicit(&machine->layout->calls[call], memory_order_relaxed);
}

void inject_clear_counts(struct machine *machine)
{
	for (int i = 0; i < CALLS_MAX; i++)
		atomic_store_explicit(&machine->layout->calls[i], 0, memory_order_relaxed);
}

static void count(struct machine *machine, unsigned int call)
{
	atomic_fetch_add_explicit(&machine->layout->calls[call], 1, memory_order_relaxed);
}

static bool is_for(const struct machine *machine, const struct layout_rule *rule)
{
	const struct layout_slot *mine = state_file_own_slot(machine);

	return !strcmp(rule->tag, "*") ||
	       !strcmp(rule->tag, mine ? machine->layout->tag[mine->tag].name : "");
}

/* Under the lock: the first rule that acts on this call, or NULL. */
static const struct layout_rule *match(struct machine *machine, unsigned int call)
{
	for (int i = 0; i < INJECT_RULES_MAX; i++) {
		struct layout_rule *rule = &machine->layout->rule[i];
		uint64_t seen;

		if (!rule->state || rule->call != call || !is_for(machine, rule))
			continue;
		seen = rule->seen++;
		if (seen < rule->skip || (rule->times && seen >= rule->skip + rule->times))
			continue;
		rule->hits++;
		return rule;
	}
	return NULL;
}

static int find_result(struct machine *machine, unsigned int call, uint64_t *ret_delay_ns)
{
	const struct layout_rule *rule;
	MACHINE_SCOPE(machine);

	rule = match(machine, call);
	*ret_delay_ns = rule ? rule->delay_ns : 0;
	return rule ? rule->result : 0;
}

int inject_enter(struct machine *machine, unsigned int call)
{
	uint64_t delay_ns;
	int result;

	count(machine, call);
	/* Relaxed: a rule just made may miss calls under way. */
	if (__builtin_expect(
		    atomic_load_explicit(&machine->layout->rule_count, memory_order_relaxed) == 0,
		    1))
		return 0;
	result = find_result(machine, call, &delay_ns);
	if (delay_ns)
		machine_sleep_ns(delay_ns);
	return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the driver's calls, and making some of them fail or wait. */
#include "sim/machine/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine/attach.h"

static const char *const call_names[] = {
#define ENTRY(symbol, base, version, form) #symbol,
#include "sim/cuda/entry.def"
#define ENTRY(symbol) #symbol,
#include "sim/nvml/entry.def"
};
enum { CALL_COUNT = sizeof(call_names) / sizeof(call_names[0]) };
_Static_assert(CALL_COUNT <= INJECT_CALLS_MAX, "more functions than counts");

int inject_find_call(const char *symbol)
{
	for (int i = 0; i < CALL_COUNT; i++) {
		if (strcmp(call_names[i], symbol) == 0)
			return i;
	}
	return -ENOENT;
}

const char *inject_call_name(unsigned int call)
{
	return call < CALL_COUNT ? call_names[call] : NULL;
}

/* Under the lock. */
static void count_rules(struct layout *layout)
{
	uint32_t count = 0;

	for (int i = 0; i < INJECT_RULES_MAX; i++)
		count += layout->rule[i].state;
	/* Relaxed: a call that misses a rule just made came before it. */
	__atomic_store_n(&layout->rule_count, count, __ATOMIC_RELAXED);
}

int inject_add_rule(struct machine *machine, const struct inject_rule *rule)
{
	struct layout *layout = machine->layout;
	int call = inject_find_call(rule->symbol);
	int r = -ENOSPC;

	if (call < 0)
		return call;
	attach_lock(machine);
	for (int i = 0; i < INJECT_RULES_MAX; i++) {
		struct layout_rule *place = &layout->rule[i];

		if (place->state != 0)
			continue;
		place->call = (uint32_t)call;
		place->result = rule->result;
		place->seen = 0;
		place->hits = 0;
		place->skip = rule->skip;
		place->times = rule->times;
		place->delay_ns = rule->delay_ns;
		snprintf(place->tag, sizeof(place->tag), "%s", rule->tag);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		place->state = 1;
		r = i;
		break;
	}
	count_rules(layout);
	attach_unlock(machine);
	return r;
}

int inject_read_rule(struct machine *machine, unsigned int index, struct inject_rule *ret_rule,
	uint64_t *ret_hits)
{
	const struct layout_rule *place;
	int r = -ENOENT;

	if (index >= INJECT_RULES_MAX)
		return -ENOENT;
	attach_lock(machine);
	place = &machine->layout->rule[index];
	if (place->state != 0 && place->call < CALL_COUNT) {
		memset(ret_rule, 0, sizeof(*ret_rule));
		snprintf(ret_rule->symbol, sizeof(ret_rule->symbol), "%s", call_names[place->call]);
		memcpy(ret_rule->tag, place->tag, sizeof(ret_rule->tag));
		ret_rule->skip = place->skip;
		ret_rule->times = place->times;
		ret_rule->result = place->result;
		ret_rule->delay_ns = place->delay_ns;
		*ret_hits = place->hits;
		r = 0;
	}
	attach_unlock(machine);
	return r;
}

void inject_clear_rules(struct machine *machine)
{
	attach_lock(machine);
	for (int i = 0; i < INJECT_RULES_MAX; i++)
		machine->layout->rule[i].state = 0;
	count_rules(machine->layout);
	attach_unlock(machine);
}

int inject_set_kernel(struct machine *machine, const char *kernel, uint64_t duration_ns)
{
	struct layout *layout = machine->layout;
	struct layout_kernel *place = NULL;

	attach_lock(machine);
	for (int i = 0; i < INJECT_KERNELS_MAX; i++) {
		struct layout_kernel *rule = &layout->kernel[i];

		if (rule->duration_ns != 0 &&
			strncmp(rule->name, kernel, sizeof(rule->name) - 1) == 0) {
			place = rule;
			break;
		}
		if (rule->duration_ns == 0 && place == NULL)
			place = rule;
	}
	if (place != NULL) {
		snprintf(place->name, sizeof(place->name), "%s", kernel);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		/* A duration of 0 means free, so the shortest is 1. */
		place->duration_ns = duration_ns > 0 ? duration_ns : 1;
		/* Relaxed: whoever sees the new epoch takes the lock before reading rules. */
		__atomic_fetch_add(&layout->kernel_epoch, 1, __ATOMIC_RELAXED);
	}
	attach_unlock(machine);
	return place != NULL ? 0 : -ENOSPC;
}

void inject_clear_kernels(struct machine *machine)
{
	attach_lock(machine);
	for (int i = 0; i < INJECT_KERNELS_MAX; i++)
		machine->layout->kernel[i].duration_ns = 0;
	__atomic_fetch_add(&machine->layout->kernel_epoch, 1, __ATOMIC_RELAXED);
	attach_unlock(machine);
}

uint64_t inject_kernel_epoch(const struct machine *machine)
{
	/* Relaxed: see inject_set_kernel(). */
	return __atomic_load_n(&machine->layout->kernel_epoch, __ATOMIC_RELAXED);
}

int inject_find_kernel(struct machine *machine, const char *kernel, uint64_t *ret_duration_ns)
{
	int r = -ENOENT;

	attach_lock(machine);
	for (int i = 0; i < INJECT_KERNELS_MAX; i++) {
		const struct layout_kernel *rule = &machine->layout->kernel[i];

		if (rule->duration_ns != 0 &&
			strncmp(rule->name, kernel, sizeof(rule->name) - 1) == 0) {
			*ret_duration_ns = rule->duration_ns;
			r = 0;
			break;
		}
	}
	attach_unlock(machine);
	return r;
}

uint64_t inject_read_count(const struct machine *machine, unsigned int call)
{
	/* Relaxed: a count orders nothing. */
	return call < CALL_COUNT ? __atomic_load_n(&machine->layout->calls[call], __ATOMIC_RELAXED)
				 : 0;
}

void inject_clear_counts(struct machine *machine)
{
	for (int i = 0; i < INJECT_CALLS_MAX; i++)
		__atomic_store_n(&machine->layout->calls[i], 0, __ATOMIC_RELAXED);
}

static bool is_for(const struct machine *machine, const struct layout_rule *rule)
{
	const struct layout *layout = machine->layout;
	const char *mine =
		machine->slot >= 0 ? layout->tag[layout->slot[machine->slot].tag].name : "";

	return strcmp(rule->tag, "*") == 0 || strcmp(rule->tag, mine) == 0;
}

/* The slow path: some rule is in force. The first that acts decides. */
static int apply(struct machine *machine, unsigned int call)
{
	uint64_t delay_ns = 0;
	int result = 0;

	attach_lock(machine);
	for (int i = 0; i < INJECT_RULES_MAX; i++) {
		struct layout_rule *rule = &machine->layout->rule[i];
		uint64_t seen;

		if (rule->state == 0 || rule->call != call || !is_for(machine, rule))
			continue;
		seen = rule->seen++;
		if (seen < rule->skip || (rule->times != 0 && seen >= rule->skip + rule->times))
			continue;
		rule->hits++;
		result = rule->result;
		delay_ns = rule->delay_ns;
		break;
	}
	attach_unlock(machine);
	if (delay_ns)
		machine_sleep_ns(delay_ns);
	return result;
}

int inject_enter(struct machine *machine, unsigned int call)
{
	/* Relaxed: a count orders nothing, and a rule just made may miss calls under way. */
	__atomic_fetch_add(&machine->layout->calls[call], 1, __ATOMIC_RELAXED);
	if (__builtin_expect(
		    __atomic_load_n(&machine->layout->rule_count, __ATOMIC_RELAXED) == 0, 1))
		return 0;
	return apply(machine, call);
}

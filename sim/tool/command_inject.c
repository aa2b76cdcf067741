/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim inject */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/inject.h"
#include "sim/tool/args.h"
#include "sim/tool/code.h"
#include "sim/tool/command.h"
#include "sim/tool/number.h"

struct request {
	const char *nth;
	const char *code;
	const char *delay_ms;
	const char *tag;
	bool is_every;
	bool is_clear;
	bool is_list;
};

/* A misspelt function: says which exported names begin like it. */
static int complain_of_function(const char *name)
{
	const char *known;
	int shown = 0;

	tool_complain("inject", 0, "the simulated driver exports no '%s'", name);
	for (unsigned int i = 0; (known = call_name(i)) && shown < 8; i++)
		if (!strncmp(known, name, strlen(name)))
			fprintf(stderr, "%s%s", shown++ ? ", " : "  did you mean ", known);
	if (shown)
		fputc('\n', stderr);
	return TOOL_FAILED;
}

static int make_rule(const char *symbol, const struct request *request, struct inject_rule *rule)
{
	uint64_t number;

	if (strlen(symbol) >= sizeof(rule->symbol))
		return complain_of_function(symbol);
	memcpy(rule->symbol, symbol, strlen(symbol));
	if (request->nth && request->is_every)
		return tool_complain("inject", TOOL_USAGE, "--nth and --every exclude each other");
	if (request->nth) {
		if (number_parse(request->nth, &number) || !number)
			return tool_complain("inject", TOOL_USAGE,
				"--nth '%s': not right; it must be a whole number from 1",
				request->nth);
		rule->skip = number - 1;
		rule->times = 1;
	}
	if (request->code && code_parse(symbol, request->code, &rule->result))
		return tool_complain("inject", TOOL_USAGE,
			"--code '%s': not right; it must be a number above 0 or a name such as %s",
			request->code,
			strncmp(symbol, "nvml", 4) ? "CUDA_ERROR_OUT_OF_MEMORY"
						   : "NVML_ERROR_GPU_IS_LOST");
	if (request->delay_ms) {
		if (number_parse(request->delay_ms, &number) || number > 86400000)
			return tool_complain("inject", TOOL_USAGE,
				"--delay-ms '%s': not right; it must be a whole number up to a day",
				request->delay_ms);
		rule->delay_ns = number * 1000000;
	}
	if (!rule->result && !rule->delay_ns)
		return tool_complain("inject", TOOL_USAGE,
			"nothing to do to %s: give --code, --delay-ms or both", symbol);
	snprintf(rule->tag, sizeof(rule->tag), "%s", request->tag ? request->tag : "*");
	return TOOL_OK;
}

static void print_rules(struct machine *machine)
{
	struct inject_rule rule;
	uint64_t hits;

	for (unsigned int i = 0; i < INJECT_RULES_MAX; i++) {
		const char *name;

		if (inject_read_rule(machine, i, &rule, &hits))
			continue;
		name = code_name(rule.symbol, rule.result);
		printf("%u: %s tag '%s'", i, rule.symbol, rule.tag);
		if (rule.times)
			printf(", calls %" PRIu64 " to %" PRIu64, rule.skip + 1,
				rule.skip + rule.times);
		else
			printf(", every call");
		if (rule.delay_ns)
			printf(", waits %.3f ms", (double)rule.delay_ns / 1e6);
		if (rule.result)
			printf(", answers %d (%s)", (int)rule.result, name ? name : "no name");
		printf(", acted %" PRIu64 " times\n", hits);
	}
}

static int add_rule(struct machine *machine, const char *symbol, const struct inject_rule *rule)
{
	int r = inject_add_rule(machine, rule);

	if (r == -ENOENT)
		return complain_of_function(symbol);
	if (r < 0)
		return tool_complain("inject", TOOL_FAILED,
			"%d rules are in force already (inject --clear drops them)",
			INJECT_RULES_MAX);
	printf("rule %d\n", r);
	return TOOL_OK;
}

int command_inject(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	struct request request = {0};
	const struct arg args[] = {
		{.name = "--nth", .text = &request.nth},
		{.name = "--every", .is_given = &request.is_every},
		{.name = "--code", .text = &request.code},
		{.name = "--delay-ms", .text = &request.delay_ms},
		{.name = "--tag", .text = &request.tag},
		{.name = "--clear", .is_given = &request.is_clear},
		{.name = "--list", .is_given = &request.is_list},
	};
	struct inject_rule rule = {0};
	int words = ARGS_READ(argc, argv, args, 0, 1);
	int result;

	if (words < 0)
		return TOOL_USAGE;
	if (words + request.is_clear + request.is_list != 1)
		return tool_complain("inject", TOOL_USAGE,
			"give one of FUNCTION, --list, --clear (see vgpu-sim help inject)");
	result = words ? make_rule(argv[1], &request, &rule) : TOOL_OK;
	if (result)
		return result;
	result = tool_open(&machine);
	if (result)
		return result;
	if (request.is_clear)
		inject_clear_rules(machine);
	else if (request.is_list)
		print_rules(machine);
	else
		result = add_rule(machine, argv[1], &rule);
	return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of compute work as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hunt/compute.h"

#define HARMLESS true
#define OTHER	 false
const struct compute_kind compute_kinds[COMPUTE_OPS] = {
#define STEP(name, arguments, weight, habit, body) {#name, arguments, weight, habit},
#include "tests/hunt/compute.def"
#undef STEP
};

static uint32_t *argument(struct compute_step *step, char letter)
{
	switch (letter) {
	case 'c':
		return &step->context;
	case 's':
		return &step->stream;
	case 'e':
		return &step->event;
	case 'g':
		return &step->graph;
	case 'r':
		return &step->other_part;
	case 'u':
		return &step->us;
	default:
		return &step->times;
	}
}

/* How many of what a letter stands for there are. */
static uint32_t most(char letter)
{
	static const struct {
		char letter;
		uint32_t count;
	} counts[] = {{'c', COMPUTE_CONTEXTS}, {'s', COMPUTE_STREAMS}, {'e', COMPUTE_EVENTS},
		{'g', COMPUTE_GRAPHS}, {'r', COMPUTE_PARTS}};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].letter == letter)
			return counts[i].count;
	return UINT32_MAX;
}

void compute_print(const struct compute_program *p, char ret_text[COMPUTE_TEXT])
{
	size_t used = (size_t)snprintf(ret_text, COMPUTE_TEXT, "cap %u", p->cap_percent);

	if (p->peer_percent)
		used += (size_t)snprintf(
			ret_text + used, COMPUTE_TEXT - used, " peer %u", p->peer_percent);
	for (uint32_t i = 0; i < p->count && used < COMPUTE_TEXT; i++) {
		struct compute_step step = p->steps[i];
		char part[16] = "";

		if (step.part)
			snprintf(part, sizeof(part), "%u/", step.part);
		used += (size_t)snprintf(ret_text + used, COMPUTE_TEXT - used, "; %s%s", part,
			compute_kinds[step.op].name);
		for (const char *a = compute_kinds[step.op].arguments; *a && used < COMPUTE_TEXT;
			a++)
			used += (size_t)snprintf(
				ret_text + used, COMPUTE_TEXT - used, " %u", *argument(&step, *a));
	}
}

static bool parse_number(const char *word, uint32_t below, uint32_t *ret_number)
{
	char *end;
	unsigned long number = word ? strtoul(word, &end, 10) : 0;

	if (!word || !*word || *end || number >= below)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static bool parse_terms(char *text, struct compute_program *ret_program)
{
	char *rest, *word = strtok_r(text, " ", &rest);

	for (; word; word = strtok_r(NULL, " ", &rest)) {
		uint32_t *number = strcmp(word, "cap") == 0    ? &ret_program->cap_percent
				   : strcmp(word, "peer") == 0 ? &ret_program->peer_percent
							       : NULL;

		if (!number || !parse_number(strtok_r(NULL, " ", &rest), 101, number))
			return false;
	}
	return true;
}

static bool parse_step(char *text, struct compute_step *ret_step)
{
	char *rest, *word = strtok_r(text, " ", &rest), *slash = word ? strchr(word, '/') : NULL;

	*ret_step = (struct compute_step){.op = COMPUTE_OPS};
	if (slash) {
		*slash = '\0';
		if (!parse_number(word, COMPUTE_PARTS, &ret_step->part))
			return false;
		word = slash + 1;
	}
	for (unsigned i = 0; word && i < COMPUTE_OPS; i++)
		if (strcmp(word, compute_kinds[i].name) == 0)
			ret_step->op = (enum compute_op)i;
	if (ret_step->op == COMPUTE_OPS)
		return false;
	for (const char *a = compute_kinds[ret_step->op].arguments; *a; a++)
		if (!parse_number(strtok_r(NULL, " ", &rest), most(*a), argument(ret_step, *a)))
			return false;
	return !strtok_r(NULL, " ", &rest);
}

bool compute_parse(const char *text, struct compute_program *ret_program)
{
	char copy[COMPUTE_TEXT], *rest, *word;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	*ret_program = (struct compute_program){.count = 0};
	word = strtok_r(copy, ";", &rest);
	if (!word || !parse_terms(word, ret_program))
		return false;
	while ((word = strtok_r(NULL, ";", &rest)))
		if (ret_program->count == COMPUTE_STEPS ||
			!parse_step(word, &ret_program->steps[ret_program->count++]))
			return false;
	return ret_program->cap_percent > 0;
}

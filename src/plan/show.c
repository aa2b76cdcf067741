/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of decide() for a person. */
#include "plan/show.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"

#define COLUMNS	   5
#define CELL_BYTES 96
#define UUID_SHORT 12 /* "GPU-5427ee3a" */
#define NAMES_MOST 8  /* of nodes that say the same */

struct table {
	char (*cells)[COLUMNS][CELL_BYTES];
	size_t rows, room;
	size_t widths[COLUMNS];
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static long long number_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

void show_text(FILE *out, const json_t *object, const char *key)
{
	text_put(out, text_of(object, key));
}

static void add_row(struct table *table, const char *const texts[COLUMNS])
{
	if (table->rows == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		void *more = realloc(table->cells, room * sizeof(*table->cells));

		if (!more)
			return;
		table->cells = more;
		table->room = room;
	}
	for (size_t i = 0; i < COLUMNS; i++) {
		char *cell = table->cells[table->rows][i];
		size_t width;

		snprintf(cell, CELL_BYTES, "%s", texts[i]);
		text_make_harmless(cell);
		width = text_width(cell);
		if (width > table->widths[i] && i < COLUMNS - 1)
			table->widths[i] = width;
	}
	table->rows++;
}

static void write_table(FILE *out, struct table *table)
{
	for (size_t row = 0; row < table->rows; row++) {
		size_t last = COLUMNS;

		while (last > 1 && !*table->cells[row][last - 1])
			last--;
		for (size_t i = 0; i < last; i++) {
			const char *cell = table->cells[row][i];
			size_t pad = i + 1 < last ? table->widths[i] - text_width(cell) + 2 : 0;

			fprintf(out, "%s%*s", cell, (int)pad, "");
		}
		fputc('\n', out);
	}
	free(table->cells);
}

static void name_device(const json_t *device, char *ret_text, size_t size)
{
	const json_t *index = json_object_get(device, "index");
	const char *uuid = text_of(device, "uuid"), *profile = text_of(device, "mig_profile");

	if (index)
		snprintf(ret_text, size, "%lld %.*s%s%.30s", number_of(device, "index"), UUID_SHORT,
			uuid, *profile ? " " : "", profile);
	else
		snprintf(ret_text, size, "%.60s", uuid);
}

static void add_devices(
	struct table *table, const char *pod, const char *node, const json_t *devices)
{
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		char name[CELL_BYTES], memory[32], cores[32];

		name_device(device, name, sizeof(name));
		snprintf(memory, sizeof(memory), "%lld MiB", number_of(device, "memory_mib"));
		snprintf(cores, sizeof(cores), "%lld %%", number_of(device, "cores_percent"));
		add_row(table,
			(const char *const[]){i ? "" : pod, i ? "" : node, name, memory, cores});
	}
}

static const char *outcome_of(const json_t *answer)
{
	const char *state = text_of(answer, "state");

	if (!strcmp(state, "pending"))
		return "fits nowhere";
	if (!strcmp(state, "not_ours"))
		return "needs no device";
	return state;
}

void show_table(FILE *out, const json_t *answers)
{
	struct table table = {0};
	const json_t *answer;
	size_t i;

	add_row(&table, (const char *const[]){"POD", "NODE", "DEVICE", "MEMORY", "CORES"});
	json_array_foreach(answers, i, answer)
	{
		const json_t *devices = json_object_get(answer, "devices");
		char pod[CELL_BYTES];

		snprintf(pod, sizeof(pod), "%.40s/%.50s", text_of(answer, "namespace"),
			text_of(answer, "pod"));
		if (json_array_size(devices))
			add_devices(&table, pod, text_of(answer, "node"), devices);
		else
			add_row(&table,
				(const char *const[]){pod, "-", outcome_of(answer), "", ""});
	}
	write_table(out, &table);
}

void show_devices(FILE *out, const json_t *devices)
{
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		char name[CELL_BYTES];

		name_device(device, name, sizeof(name));
		text_make_harmless(name);
		fprintf(out, "  %s, %lld MiB, %lld %% of its compute time", name,
			number_of(device, "memory_mib"), number_of(device, "cores_percent"));
		if (*text_of(device, "container")) {
			fputs(", for container ", out);
			show_text(out, device, "container");
		}
		fputc('\n', out);
	}
}

static void show_asks(FILE *out, const json_t *asks)
{
	const json_t *ask;
	size_t i;

	json_array_foreach(asks, i, ask)
	{
		fputs("  asks: ", out);
		show_text(out, ask, "container");
		fprintf(out, " (%s) %lld device%s, ", text_of(ask, "kind"),
			number_of(ask, "devices"), number_of(ask, "devices") == 1 ? "" : "s");
		if (json_object_get(ask, "memory_mib"))
			fprintf(out, "%lld MiB", number_of(ask, "memory_mib"));
		else
			fprintf(out, "%lld %% of the memory", number_of(ask, "memory_percent"));
		fprintf(out, " and %lld %% of the compute time of each\n",
			number_of(ask, "cores_percent"));
	}
}

static void show_room(FILE *out, const json_t *quota)
{
	const json_t *memory = json_object_get(quota, "memory_left_mib"),
		     *cores = json_object_get(quota, "cores_left_percent");

	if (!quota)
		return;
	fputs("  quota: the namespace may still take", out);
	if (memory)
		fprintf(out, " %lld MiB", (long long)json_integer_value(memory));
	if (cores)
		fprintf(out, "%s %lld %% of compute time", memory ? " and" : "",
			(long long)json_integer_value(cores));
	fputc('\n', out);
}

/* Nodes that say the same stand together. */
static bool says_same(const json_t *a, const json_t *b)
{
	return !strcmp(text_of(a, "answer"), text_of(b, "answer")) &&
	       !strcmp(text_of(a, "reason"), text_of(b, "reason")) &&
	       !strcmp(text_of(a, "by"), text_of(b, "by")) &&
	       json_equal(json_object_get(a, "score"), json_object_get(b, "score")) ==
		       (json_object_get(a, "score") != NULL);
}

static void show_reason(FILE *out, const json_t *node)
{
	const char *answer = text_of(node, "answer");

	if (!strcmp(answer, "chosen") || !strcmp(answer, "would_do")) {
		fprintf(out, "%s, score %.2f", *answer == 'c' ? "chosen" : "would do, too",
			json_real_value(json_object_get(node, "score")));
		return;
	}
	show_text(out, node, "reason");
	if (*text_of(node, "hint")) {
		fputs(" (", out);
		show_text(out, node, "hint");
		fputc(')', out);
	}
	if (!strcmp(text_of(node, "by"), "kube-scheduler"))
		fputs(" (says kube-scheduler)", out);
}

static void show_group(FILE *out, const json_t *nodes, size_t first, bool *is_shown)
{
	const json_t *node = json_array_get(nodes, first);
	size_t count = 0;

	fputs("  ", out);
	for (size_t i = first; i < json_array_size(nodes); i++) {
		const json_t *other = json_array_get(nodes, i);

		if (is_shown[i] || !says_same(node, other))
			continue;
		is_shown[i] = true;
		if (count++ >= NAMES_MOST)
			continue;
		fputs(count > 1 ? ", " : "", out);
		show_text(out, other, "node");
	}
	if (count > NAMES_MOST)
		fprintf(out, " and %zu more", count - NAMES_MOST);
	fputs(": ", out);
	show_reason(out, node);
	fputc('\n', out);
}

static void show_sights(FILE *out, const json_t *device)
{
	const json_t *sight;
	size_t i;

	json_array_foreach(json_object_get(device, "containers"), i, sight)
	{
		fputs("        ", out);
		show_text(out, sight, "container");
		if (json_is_true(json_object_get(sight, "would_do")))
			fprintf(out, ": would do, score %.2f\n",
				json_real_value(json_object_get(sight, "score")));
		else
			fprintf(out, ": %s\n", text_of(sight, "reason"));
	}
}

static void show_node(FILE *out, const json_t *node)
{
	const json_t *device;
	size_t i;

	fputs("  ", out);
	show_text(out, node, "node");
	fputs(": ", out);
	show_reason(out, node);
	fputc('\n', out);
	json_array_foreach(json_object_get(node, "devices"), i, device)
	{
		char name[CELL_BYTES];

		name_device(device, name, sizeof(name));
		text_make_harmless(name);
		fprintf(out, "    %s, ", name);
		show_text(out, device, "type");
		fprintf(out, ": %lld/%lld slices, %lld/%lld MiB, %lld/%lld %% used%s%s\n",
			number_of(device, "slots_used"), number_of(device, "slots"),
			number_of(device, "memory_used_mib"), number_of(device, "memory_mib"),
			number_of(device, "cores_used_percent"), number_of(device, "cores_percent"),
			json_is_true(json_object_get(device, "is_healthy")) ? "" : ", not healthy",
			json_is_true(json_object_get(device, "is_cordoned")) ? ", cordoned" : "");
		show_sights(out, device);
	}
}

static void show_nodes(FILE *out, const json_t *nodes, bool with_scores)
{
	_cleanup_free_ bool *is_shown = calloc(json_array_size(nodes) + 1, sizeof(*is_shown));
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node)
	{
		if (with_scores)
			show_node(out, node);
		else if (is_shown && !is_shown[i])
			show_group(out, nodes, i, is_shown);
	}
}

static void show_policy(FILE *out, const json_t *policy)
{
	const json_t *weights = json_object_get(policy, "weights");

	fputs("  policy: nodes by ", out);
	show_text(out, policy, "node");
	fputs(", devices by ", out);
	show_text(out, policy, "device");
	fprintf(out, "; weights slot=%lld, core=%lld, memory=%lld\n", number_of(weights, "slot"),
		number_of(weights, "core"), number_of(weights, "memory"));
}

static void show_preemption(FILE *out, const json_t *preemption)
{
	const json_t *pod;
	size_t i;

	if (!preemption)
		return;
	fputs("  would fit on ", out);
	show_text(out, preemption, "node");
	fputs(" if these ended: ", out);
	json_array_foreach(json_object_get(preemption, "ends"), i, pod)
	{
		if (i)
			fputs(", ", out);
		show_text(out, pod, "namespace");
		fputc('/', out);
		show_text(out, pod, "pod");
	}
	fputs(json_is_true(json_object_get(preemption, "is_asked"))
			? "; they are of lower priority, and kube-scheduler may end them\n"
			: "; they are of lower priority, but kube-scheduler ends none while slices "
			  "are left\n",
		out);
}

void show_answer(FILE *out, const json_t *answer, bool with_scores)
{
	const char *node = text_of(answer, "node");

	show_text(out, answer, "namespace");
	fputc('/', out);
	show_text(out, answer, "pod");
	fputs(": ", out);
	if (*node) {
		fputs("goes to ", out);
		show_text(out, answer, "node");
	} else {
		fputs(outcome_of(answer), out);
	}
	if (*text_of(answer, "why")) {
		fputs(": ", out);
		show_text(out, answer, "why");
	}
	fputs(json_is_true(json_object_get(answer, "is_moved"))
			? " (it ran on a node that is drained)\n"
			: "\n",
		out);
	if (*text_of(answer, "remark")) {
		fputs("  webhook: ", out);
		show_text(out, answer, "remark");
		fputc('\n', out);
	}
	show_asks(out, json_object_get(answer, "asks"));
	show_room(out, json_object_get(answer, "quota"));
	if (with_scores && json_object_get(answer, "policy"))
		show_policy(out, json_object_get(answer, "policy"));
	show_nodes(out, json_object_get(answer, "nodes"), with_scores);
	show_preemption(out, json_object_get(answer, "preemption"));
}

static const char *const meanings[FIT_REASONS] = {
	[FIT_ALLOCATED_TOO_FEW] = "so many devices would do, and the container wants more",
	[FIT_COMPUTE_EXHAUSTED] = "all of the device's compute time is promised",
	[FIT_CORDONED] = "the device is cordoned",
	[FIT_LACKS_CORES] = "too little of the device's compute time is left",
	[FIT_LACKS_MEMORY] = "too little of the device's memory is left",
	[FIT_MIG_INFEASIBLE] = "no MIG instance of that size has a free place",
	[FIT_NOT_HEALTHY] = "the device is not healthy",
	[FIT_SLICES_EXHAUSTED] = "the device has no slice left",
	[FIT_TYPE_DIFFERS] = "the device's type or mode is not what the pod wants",
	[FIT_UUID_DIFFERS] = "the device's UUID is not what the pod wants",
	[FIT_EXCLUSIVE] = "the pod wants the device whole, and others have a part of it",
	[FIT_LACKS_DEVICES] = "the node has fewer devices than a container wants",
	[FIT_NUMA_DIFFERS] = "too few devices of one NUMA node would do",
	[FIT_QUOTA] = "the namespace's quota is used up",
};

void show_note_words(struct show_words *words, const json_t *answer)
{
	const json_t *node;
	size_t at;

	json_array_foreach(json_object_get(answer, "nodes"), at, node)
	{
		for (unsigned i = 0; i < FIT_REASONS; i++)
			if (strstr(text_of(node, "reason"), fit_reason_word((enum fit_reason)i)))
				words->occurs[i] = true;
	}
}

void show_words(FILE *out, const struct show_words *words)
{
	bool is_first = true;

	for (unsigned i = 0; i < FIT_REASONS; i++) {
		if (!words->occurs[i])
			continue;
		fprintf(out, "%s%s: %s\n", is_first ? "\n" : "",
			fit_reason_word((enum fit_reason)i), meanings[i]);
		is_first = false;
	}
}

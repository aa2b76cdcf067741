/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's loop: reads a line, finds the command, answers. */
#include "tests/tenant/client.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LINE_BYTES 512
#define WORDS	   12

static struct client client;

uint64_t client_size(const char *text)
{
	uint64_t total = 0;
	char *end;

	for (;;) {
		uint64_t part = strtoull(text, &end, 0);

		if (end == text)
			exit(64);
		if (*end == 'k')
			part <<= 10;
		else if (*end == 'm')
			part <<= 20;
		else if (*end == 'g')
			part <<= 30;
		if (strchr("kmg", *end) && *end)
			end++;
		total += part;
		if (*end != '+')
			break;
		text = end + 1;
	}
	if (*end)
		exit(64);
	return total;
}

/* Two threads have commands at times (client_race.c), and one of them may be cancelled at any instruction. */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static int names_enter(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&names_lock);
	return state;
}

static void names_leave(const int *state)
{
	pthread_mutex_unlock(&names_lock);
	pthread_setcancelstate(*state, NULL);
}

#define NAMES_SCOPE() __attribute__((cleanup(names_leave), unused)) const int before = names_enter()

static struct client_value *find(struct client *c, const char *name)
{
	for (unsigned i = c->value_count; i-- > 0;)
		if (strcmp(c->values[i].name, name) == 0)
			return &c->values[i];
	return NULL;
}

uint64_t client_get(struct client *c, const char *name)
{
	NAMES_SCOPE();
	struct client_value *v = find(c, name);

	if (!v) {
		fprintf(stderr, "client: nothing is called %s\n", name);
		exit(65);
	}
	return v->value;
}

void client_put(struct client *c, const char *name, uint64_t value)
{
	NAMES_SCOPE();
	struct client_value *v = find(c, name);

	if (!v && c->value_count == CLIENT_NAMES) {
		fprintf(stderr, "client: too many names\n");
		exit(66);
	}
	if (!v)
		v = &c->values[c->value_count++];
	snprintf(v->name, sizeof(v->name), "%s", name);
	v->value = value;
}

void client_forget(struct client *c, const char *name)
{
	NAMES_SCOPE();
	struct client_value *v = find(c, name);

	if (v)
		*v = c->values[--c->value_count];
}

CUstream client_stream(struct client *c, char **word, unsigned count, unsigned at)
{
	bool is_named = count > at && strcmp(word[at], "0") != 0;

	return is_named ? (CUstream)(uintptr_t)client_get(c, word[at]) : NULL;
}

void client_say(struct client *c, const char *format, ...)
{
	size_t used = strlen(c->extra);
	va_list args;

	va_start(args, format);
	vsnprintf(c->extra + used, sizeof(c->extra) - used, format, args);
	va_end(args);
}

void client_keep(struct client *c, CUdeviceptr block)
{
	if (c->filled_count == c->filled_room) {
		size_t room = c->filled_room ? c->filled_room * 2 : 1024;
		CUdeviceptr *grown = realloc(c->filled, room * sizeof(*grown));

		if (!grown)
			exit(67);
		c->filled = grown;
		c->filled_room = room;
	}
	c->filled[c->filled_count++] = block;
}

static const struct client_command *command_named(const char *name)
{
	const struct client_command *const tables[] = {
		client_array_commands,
		client_code_commands,
		client_compute_commands,
		client_copy_commands,
		client_depth_commands,
		client_graph_commands,
		client_launch_commands,
		client_memory_commands,
		client_nvml_commands,
		client_old_commands,
		client_event_commands,
		client_pressure_commands,
		client_process_commands,
		client_race_commands,
		client_share_commands,
		client_tour_commands,
		client_view_commands,
	};

	for (unsigned t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct client_command *at = tables[t]; at->name; at++)
			if (strcmp(at->name, name) == 0)
				return at;
	return NULL;
}

/* A thread's clock: without the time in which it could have run, and had no processor. */
static uint64_t own_now_ns(void)
{
	unsigned long long delay_ns = 0;
	uint64_t before_ns, now_ns;
	unsigned attempts = 0;

	do {
		FILE *file = NULL;

		before_ns = clock_now_ns();
		/* a virtual clock has no such time in it */
		if (!getenv("TEST_CLOCK"))
			file = fopen("/proc/thread-self/schedstat", "re");
		if (file && fscanf(file, "%*u %llu", &delay_ns) != 1)
			delay_ns = 0;
		if (file)
			fclose(file);
		now_ns = clock_now_ns();
		/* The two are of one moment, or the processor was lost between them. */
	} while (now_ns - before_ns > 500000 && attempts++ < 1000);
	return now_ns - delay_ns;
}

int client_run(struct client *c, char **word, unsigned count)
{
	const struct client_command *command = command_named(word[0]);
	uint64_t start_ns, end_ns;
	int r;

	if (strcmp(word[0], "time") == 0 && count > 1) {
		start_ns = own_now_ns();
		r = client_run(c, word + 1, count - 1);
		end_ns = own_now_ns();
		/* Each is exact to half a ms. */
		client_say(c, " us=%llu",
			(unsigned long long)(end_ns > start_ns ? (end_ns - start_ns) / 1000 : 0));
		return r;
	}
	if (!command) {
		client_say(c, " no such command");
		return CLIENT_BAD_COMMAND;
	}
	if (count - 1 < command->words) {
		client_say(c, " usage: %s %s", command->name, command->usage);
		return CLIENT_BAD_COMMAND;
	}
	return command->run(c, word, count);
}

static void answer_line(struct client *c, char *line)
{
	char *word[WORDS], *rest = NULL;
	unsigned count = 0;
	int r;

	for (char *w = strtok_r(line, " \t\r\n", &rest); w && count < WORDS;
		w = strtok_r(NULL, " \t\r\n", &rest))
		word[count++] = w;
	if (count == 0 || word[0][0] == '#')
		return;
	c->extra[0] = '\0';
	r = client_run(c, word, count);
	printf("%d%s\n", r, c->extra);
}

static int usage(void)
{
	fprintf(stderr, "usage: client [DOOR [again]] < commands\ndoors:");
	for (unsigned i = 0; i < DOOR_KINDS; i++)
		fprintf(stderr, " %s", door_name(i));
	fprintf(stderr, "\n");
	return 64;
}

int main(int argc, char **argv)
{
	const char *missing;
	char line[LINE_BYTES];
	unsigned kind = DOOR_LINKED;

	if (argc > 1)
		for (kind = 0; kind < DOOR_KINDS && strcmp(door_name(kind), argv[1]) != 0;)
			kind++;
	if (kind == DOOR_KINDS)
		return usage();
	client.argv = argv;
	client.door = (enum door_kind)kind;
	if (door_open(client.door, &client.cu, &missing) < 0) {
		fprintf(stderr, "client: %s has no %s\n", door_name(kind), missing);
		return 68;
	}
	/* No buffer: an exec or a fork must not lose or double what is in one. */
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, LINE_BYTES + CLIENT_EXTRA);
	if (argc > 2)
		printf("0 again\n"); /* the answer to "exec", by the new image */
	while (fgets(line, sizeof(line), stdin))
		answer_line(&client, line);
	return 0;
}

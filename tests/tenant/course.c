/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of one fault each. */
#include "tests/tenant/course.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOUR_LINES 3
#define TOURS	   3 /* so many tell what each tour passes */

static void count_place(struct course *c, const char *name)
{
	unsigned i = 0;

	while (i < c->place_count && strcmp(c->places[i].name, name) != 0)
		i++;
	if (i == c->place_count) {
		assert_true(c->place_count < COURSE_PLACES);
		snprintf(c->places[c->place_count++].name, sizeof(c->places[0].name), "%s", name);
	}
	c->places[i].tour_hits++;
}

static bool is_reapers(const char *name)
{
	return strncmp(name, "reap:", 5) == 0;
}

void course_end_case(struct course *c)
{
	unlink(c->slice->region);
	c->node->tenant_count = 0;
}

/* Its compute time is metered, and it takes turns, though with nobody. */
struct course course_begin(struct node *node)
{
	struct course c = {.node = node, .slice = slice_new(node, "a", "4g", NULL)};
	char text[1024];

	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\nturns %s/turns\n"
		"device %s memory 4g cores 50\nend\n",
		c.slice->region, node->dir, node->uuid[0]);
	slice_write(c.slice, text);
	return c;
}

struct tenant *course_start(struct course *c, const char *fault)
{
	char log[256];

	snprintf(log, sizeof(log), "VGPU_FAULT_LOG=%s", c->log);
	return tenant_start(c->node, c->slice, "linked", fault, c->log[0] ? log : NULL, NULL);
}

void course_expect_tour(struct tenant *t)
{
	for (unsigned i = 0; i < TOUR_LINES; i++) {
		int r = tenant_answer(t);

		if (r != OK)
			print_message("line %u of the tour: %d%s\n", i, r, t->answer);
		assert_int_equal(r, OK);
	}
}

void course_leave_a_dead(struct course *c)
{
	struct tenant *dead = tenant_start(
		c->node, c->slice, "linked", "VGPU_FAULT=kill 2 charge: in total", NULL);

	tenant_tell(dead, TOUR);
	assert_int_equal(tenant_end(dead), SIGKILL);
}

/* Counts what one tour passes: a reaper's steps, or all others. Some depend on the clock; the least counts. */
static void count_places(struct course *c, bool are_reapers, bool is_first)
{
	unsigned requests = 0;
	char line[96];
	FILE *file;

	file = fopen(c->log, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "memory") == 0)
			requests++;
		else if (is_reapers(line) == are_reapers)
			count_place(c, line);
	}
	fclose(file);
	unlink(c->log);
	for (unsigned i = 0; i < c->place_count; i++) {
		struct place *p = &c->places[i];

		if (is_reapers(p->name) == are_reapers && (is_first || p->tour_hits < p->hits))
			p->hits = p->tour_hits;
		p->tour_hits = 0;
	}
	if (!are_reapers && (is_first || requests < c->memory_requests))
		c->memory_requests = requests;
}

static void forget_places_that_were_missed(struct course *c)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < c->place_count; i++)
		if (c->places[i].hits)
			c->places[kept++] = c->places[i];
	c->place_count = kept;
}

/* Alone in a new region, and where somebody has died. */
void course_find_places(struct course *c)
{
	for (unsigned i = 0; i < 2 * TOURS; i++) {
		bool has_dead = i >= TOURS;
		struct tenant *t;

		if (has_dead)
			course_leave_a_dead(c);
		snprintf(c->log, sizeof(c->log), "%s/places", c->node->dir);
		t = course_start(c, "VGPU_FAULT=");
		tenant_tell(t, TOUR);
		course_expect_tour(t);
		assert_int_equal(tenant_end(t), 0);
		count_places(c, has_dead, i % TOURS == 0);
		c->log[0] = '\0';
		course_end_case(c);
	}
	forget_places_that_were_missed(c);
	assert_true(c->place_count > 50);
}

void course_expect_within(struct tenant *t, uint64_t us, int want, const char *what)
{
	expect(t, want, "time %s", what);
	if (tenant_number(t, "us") > us)
		print_message(
			"%s took %llu us\n", what, (unsigned long long)tenant_number(t, "us"));
	assert_true(tenant_number(t, "us") <= us);
}

void course_expect_all_for(struct course *c, struct tenant *t)
{
	char all[64];

	snprintf(all, sizeof(all), "alloc all %lluk",
		(unsigned long long)((COURSE_QUOTA - CONTEXT_BYTES) / KIB));
	/* The dead are waited for, for as long as a process may wait, while the kernel ends them. */
	course_expect_within(t, 2 * PEER_US, OK, all);
	expect(t, OUT_OF_MEMORY, "alloc more 1");
	assert_int_equal(slice_agreed(c->slice, 0), COURSE_QUOTA);
	expect(t, OK, "free all");
	assert_int_equal(slice_agreed(c->slice, 0), CONTEXT_BYTES);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Something is tried at each place that the tour passes. */
#include "tests/tenant/places.h"

#include <stdio.h>
#include <string.h>

/* Steps that only the first process of a slice does. */
static bool is_of_the_first(const struct place *p)
{
	return strncmp(p->name, "begin:", 6) == 0 || strncmp(p->name, "context:", 8) == 0;
}

/* How often a process comes there, the clock decides. */
static bool depends_on_the_clock(const struct place *p)
{
	return strncmp(p->name, "meter:", 6) == 0 || strncmp(p->name, "gate:", 5) == 0 ||
	       strncmp(p->name, "stream:", 7) == 0 || strncmp(p->name, "turn:", 5) == 0;
}

/* A reaper's steps, which need somebody who has died. */
static bool is_of_a_reaper(const struct place *p)
{
	return strncmp(p->name, "reap:", 5) == 0;
}

void places_try_everywhere(struct node *node, const char *action, places_try_fn *try)
{
	struct course c = course_begin(node);
	struct tenant *other;
	char fault[160];

	course_find_places(&c);
	for (unsigned i = 0; i < c.place_count; i++) {
		const struct place *p = &c.places[i];
		unsigned later = (p->hits + 1) / 2;

		for (unsigned n = 1; n <= later; n += later > 1 ? later - 1 : 1) {
			snprintf(fault, sizeof(fault), "VGPU_FAULT=%s %u %s", action, n, p->name);
			print_message("%s\n", fault);
			other = is_of_the_first(p) ? NULL : tenant_new(c.slice);
			if (is_of_a_reaper(p))
				course_leave_a_dead(&c);
			if (!try(&c, fault, other)) {
				print_message("not passed so often this time\n");
				assert_true(depends_on_the_clock(p));
				/* Or its context would be there in the next case. */
				if (other)
					assert_int_equal(tenant_end(other), 0);
			}
			course_end_case(&c);
		}
	}
	print_message("%s at %u places\n", action, c.place_count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of one fault each: a slice whose processes go on the tour (client_tour.c), one of them with an
 * order for fault_env.c. Each case begins with a new region.
 */
#pragma once

#include "tests/tenant/tenant.h"

#define COURSE_QUOTA  (4 * GIB)
#define COURSE_PLACES 192
#define TOUR	      "primary 0\ntour\nunprimary 0"
#define PEER_US	      50000 /* what a call may cost a process whose peer is stopped */

struct place {
	char name[96];
	unsigned hits; /* by each tour, at least */
	unsigned tour_hits;
};

struct course {
	struct node *node;
	struct slice *slice;
	struct place places[COURSE_PLACES];
	unsigned place_count;
	unsigned memory_requests; /* of our own memory, by one tour */
	char log[200];
};

struct course course_begin(struct node *node);

/* Which places the tour passes, and how often. */
void course_find_places(struct course *course);

/* Starts a client with VGPU_FAULT=...; and one that has died in the middle of a charge. */
struct tenant *course_start(struct course *course, const char *fault);
void course_leave_a_dead(struct course *course);

/* The next case begins with a new region and no process but the test. */
void course_end_case(struct course *course);

/* The answers to TOUR, all of them success. */
void course_expect_tour(struct tenant *tenant);

/* The tenant's answer, within so many microseconds. */
void course_expect_within(struct tenant *tenant, uint64_t us, int want, const char *what);

/* All of the quota but t's context is there for t, and not a chunk more; then books and driver agree. */
void course_expect_all_for(struct course *course, struct tenant *tenant);

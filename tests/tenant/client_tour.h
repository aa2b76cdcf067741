/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways of the tour (client_tour.c) have in common. */
#pragma once

#include "tests/tenant/client.h"

#define TOUR_RESULTS 16
#define TOUR_MIB     (UINT64_C(1) << 20)

struct tour {
	const struct door *cu;
	struct client *client;
	CUcontext context;
	int results[TOUR_RESULTS]; /* each that was not success, once */
	unsigned result_count;
	unsigned left; /* things that could not be given back */
};

/* Whether it was success; else the tour tells the result. */
bool tour_went_well(struct tour *t, CUresult r);

/* One way to give something back; more is its size, or what else there is to say. */
typedef CUresult tour_give_fn(const struct tour *t, uint64_t value, uint64_t more);

/* A fault comes once: what could not be given back goes at the next attempt. */
void tour_give(struct tour *t, tour_give_fn *how, uint64_t value, uint64_t more);

/* Ways through what comes with work: arrays, graphs, code, launches, streams, green contexts. */
typedef void tour_way_fn(struct tour *t);
extern tour_way_fn *const tour_work_ways[];

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random load over every way to take and give back device memory that a tenant has.
 *
 * Each way is a family: a file here with what it does, and a row in family.def. A load is one thread's:
 * it takes and gives back at random by a seed, and in the end gives back everything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/tenant/client.h"

#define LOAD_MIB (UINT64_C(1) << 20)

struct load;
struct load_held;

struct load_family {
	/* How often it is chosen, beside the others. */
	unsigned weight;
	/*
	 * A driver function that has to be replaced by the library for the family to be used, so that
	 * one whose memory is not charged yet is left out. NULL: it is always used.
	 */
	const char *symbol;
	bool ends_with_context;	 /* what it takes goes when the primary context does */
	bool needs_solitude;	 /* disturbs other threads of its process */
	bool stays_with_process; /* takes what stays until the process ends: for the hunt alone */
	bool stays_with_primary; /* takes what stays until the primary context ends: for who ends that */
	bool is_hostile;	 /* takes from other threads what they use: for the hunt alone */
	bool bears_misuse; /* the driver refuses what was given back already, or goes on using what is */
	/* Before everything, and after everything was given back; may be NULL. */
	CUresult (*begin)(struct load *l);
	CUresult (*end)(struct load *l);
	/*
	 * Takes something and says in *ret_held what, or leaves it as it is where nothing is held in
	 * the end. Whatever it took is given back in the case of an error, which may be "out of memory"
	 * and nothing else.
	 */
	CUresult (*take)(struct load *l, struct load_held *ret_held);
	CUresult (*give)(struct load *l, const struct load_held *held);
	/* Does something with what is held, and leaves it as it was; may be NULL. Only the hunt does it. */
	CUresult (*use)(struct load *l, const struct load_held *held);
};

enum load_family_name {
#define FAMILY(name) LOAD_##name,
#include "tests/tenant/load/family.def"
	LOAD_FAMILIES
};

#define FAMILY(name) extern const struct load_family load_##name;
#include "tests/tenant/load/family.def"

/* Something that was taken; the values are the family's own. */
struct load_held {
	const struct load_family *family; /* NULL: nothing */
	CUdeviceptr value, bytes, other;
	unsigned number; /* by which the caller knows it */
};

#define LOAD_HELD_MOST 64 /* in one thread */

struct load {
	struct client *client;
	/* Told of data that nobody knows of before the call that brings it; NULL: such calls are not made. */
	void (*hide)(uint64_t bytes);
	bool is_alone;		     /* no other thread of its process uses CUDA */
	bool ends_primary;	     /* the primary context ends with the load */
	bool ends_process;	     /* and so does the process */
	bool is_hostile;	     /* calls may fail in any way */
	uint64_t state;		     /* of the generator */
	uint64_t own[LOAD_FAMILIES]; /* a word for each family */
	CUcontext context;
	unsigned weight[LOAD_FAMILIES]; /* 0: not to be had here */
	struct load_held held[LOAD_HELD_MOST];
	unsigned held_count;
};

/* The next random number, one below a bound, and a size as a program may ask for. */
uint64_t load_random(struct load *l);
uint64_t load_below(struct load *l, uint64_t bound);
uint64_t load_random_bytes(struct load *l);

/*
 * For a caller that chooses for itself: what is done before everything; taking by a family, which is noted in the
 * table; and giving back all that is left.
 */
CUresult load_begin(struct load *l);
CUresult load_take(struct load *l, enum load_family_name name, unsigned number);
CUresult load_end(struct load *l);

/* What is about to be called may take so much of which nobody knows before. */
static inline void load_hide(struct load *l, uint64_t bytes)
{
	if (l->hide)
		l->hide(bytes);
}

/* A descriptor that was given is closed once, also where a program gives it back twice. */
CUdeviceptr load_keep_descriptor(int fd);
void load_close_descriptor(CUdeviceptr kept);

/* A function of the driver that is in no door. */
#define LOAD_FN(symbol) ((symbol##_fn *)client_find(#symbol))

/* Gives back what does not end with the primary context, and forgets what does. */
CUresult load_leave_context(struct load *l);

struct load_count {
	uint64_t done, refused;
	const char *family; /* the last one */
};

/* Whether the library is behind this family's functions, or there is no library. */
bool load_uses(enum load_family_name name);
const char *load_family_text(enum load_family_name name);

/*
 * Does so many random operations on the current device and gives all memory back. Returns 0, or the
 * first result of the driver that is neither success nor "out of memory". ret_count is set in either
 * case. Several threads may do this at once, each with a seed of its own.
 */
int load_run(struct client *client, uint64_t seed, uint64_t operations, bool is_alone,
	struct load_count *ret_count);

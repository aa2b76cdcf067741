/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated node with slices and tenants, for tests: the test itself is not under the library. It
 * starts clients (client.h) that are, tells each what to do, and compares what the slice's books say
 * with what the simulated driver knows that it gave.
 *
 * Paths come from the environment: TENANT_LIBRARY (the library under test), TENANT_DRIVER (the folders
 * of the simulated libraries), TENANT_PROGRAMS (the folders of client and the other programs), TENANT_REGIONS (where
 * regions are made; without it they are beside the machine).
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <sys/types.h>

#include <cmocka.h>

#include "sim/machine/inject.h"
#include "sim/machine/machine.h"

#define KIB	     (UINT64_C(1) << 10)
#define MIB	     (UINT64_C(1) << 20)
#define GIB	     (UINT64_C(1) << 30)

#define NODE_SLICES  8
#define NODE_TENANTS 32
#define NODE_DEVICES 2
#define ANSWER_BYTES 8192

/* The driver's words, as the client answers them. */
#define OK	      0
#define INVALID_VALUE 1
#define OUT_OF_MEMORY 2

/* A context on the boards that the tests use: what a quota loses to each process. */
#define CONTEXT_BYTES (518 * MIB)
#define CONTEXT_EXTRA UINT64_C(5767168)
/* Streams, one by one or a hundred: taken by the driver and not charged. */
#define TWO_STREAMS_BYTES     (2 * MIB)
#define HUNDRED_STREAMS_BYTES (54 * MIB)

struct slice {
	struct node *node;
	char name[32]; /* also the tag of its processes */
	char share[256], region[256];
	uint64_t quota[NODE_DEVICES]; /* the largest ever in force; UINT64_MAX: none */
	const char *terms;	      /* another line of the share file, or NULL */
	uint64_t slack_bytes;	      /* what its processes may hold beyond, like streams */
};

struct tenant {
	struct node *node;
	struct slice *slice;
	pid_t pid;
	int to_fd, from_fd;
	bool is_running;
	char answer[ANSWER_BYTES]; /* the last one, without its result */
};

struct node {
	char dir[128];
	char state[160], errors[160];
	char uuid[NODE_DEVICES][MACHINE_UUID_SIZE];
	struct machine *machine;
	struct slice slices[NODE_SLICES];
	unsigned slice_count;
	struct tenant tenants[NODE_TENANTS];
	unsigned tenant_count;
	bool is_loud;		   /* lines on stderr are part of the test */
	bool is_in_namespace;	   /* the next tenant gets PIDs of its own */
	const char *preload_first; /* a library before ours, or NULL */
	const char *preload_last;  /* one behind it */
	const char *system_share;  /* the text of /etc/vgpu/share, or NULL */
	void (*enter)(void);	   /* what the next tenants do before they begin, or NULL */
	const char *driver;	   /* another folder for libcuda.so.1, or NULL */
	bool is_without_library;   /* nothing is preloaded */
	uint64_t file_most_bytes;  /* RLIMIT_FSIZE of the next tenants; 0: none */
};

/*
 * For cmocka: a machine of two H200 in a folder of its own; and the end of it. The second looks
 * whether a slice's processes ever held more than its quota, and whether the library wrote to stderr
 * where the test did not expect it.
 */
int node_setup(void **state);
int node_teardown(void **state);

/* A slice with a quota for each device, as in a share file ("1g", "unlimited", NULL: no line). */
struct slice *slice_new(struct node *node, const char *name, const char *first, const char *second);
/* The same without a share file: what it may have is up to the tenants' environment. */
struct slice *slice_new_bare(struct node *node, const char *name, uint64_t first, uint64_t second);
/* Changes the quotas of the share file, in one step. */
void slice_change(struct slice *slice, const char *first, const char *second);
/* Puts a text of its own in the place of the share file. */
void slice_write(struct slice *slice, const char *text);

/* Bytes that the slice's processes hold of a device: as the driver knows, and as the books say. */
uint64_t slice_truth(const struct slice *slice, int device);
uint64_t slice_peak(const struct slice *slice, int device);
uint64_t slice_books(const struct slice *slice, int device);
/* Both, and that they agree, but for the slice's slack_bytes, which may be held uncharged. */
uint64_t slice_agreed(const struct slice *slice, int device);

/*
 * Starts a client that goes through the door (door.h), with more of environment: strings NAME=VALUE
 * and a NULL. The slice may be NULL.
 */
struct tenant *tenant_start(struct node *node, struct slice *slice, const char *door, ...)
	__attribute__((sentinel));
/* The same through linked names with a primary context on device 0. */
struct tenant *tenant_new(struct slice *slice);

/* Tells it something, waits for the answer (20 s at most), returns the result in it. */
int tenant_ask(struct tenant *tenant, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tenant_tell(struct tenant *tenant, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int tenant_answer(struct tenant *tenant);

/* The number behind "key=" in the last answer. */
uint64_t tenant_number(const struct tenant *tenant, const char *key);

/* Waits until it is stopped, or has ended: false. */
bool tenant_stops(const struct tenant *tenant);

/* Tells it no more: it ends when it has done what it was told. */
void tenant_hang_up(struct tenant *tenant);

/* Lets it end, or kills it; returns its wait status. */
int tenant_end(struct tenant *tenant);
int tenant_kill(struct tenant *tenant, int signal);

/* Whether this process may have an /etc of its own, as node->system_share needs. */
bool node_can_have_system_share(void);

/* Runs a program of TENANT_PROGRAMS to its end; returns its wait status and what it printed. */
int node_run(
	struct node *node, struct slice *slice, char *const *argv, char *ret_output, size_t size);
/* The path of a program or library of TENANT_PROGRAMS. */
const char *node_program(const char *name);

/* What all tenants have written to stderr so far. */
void node_read_errors(const struct node *node, char *ret_text, size_t size);

/* A file of that content below the node's folder; the path lives until the next call. */
const char *node_file(struct node *node, const char *name, const char *content, size_t length);

#define expect(tenant, want, ...)                                                            \
	do {                                                                                 \
		int got_ = tenant_ask((tenant), __VA_ARGS__);                                \
		if (got_ != (want))                                                          \
			print_message("%s:%d: asked for %d, got %d%s\n", __FILE__, __LINE__, \
				(want), got_, (tenant)->answer);                             \
		assert_int_equal(got_, (want));                                              \
	} while (0)

#define test_with_node(f) cmocka_unit_test_setup_teardown(f, node_setup, node_teardown)

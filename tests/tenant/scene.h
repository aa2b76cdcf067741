/* SPDX-License-Identifier: Apache-2.0 */
/* A scene of the tests of what NVML shows: two slices on one card, and who looks at them. */
#pragma once

#include "tests/tenant/tenant.h"

/* NVML's words, as the client answers them. */
#define NOT_SUPPORTED	  3
#define NOT_FOUND	  6
#define INSUFFICIENT_SIZE 7
#define WRONG_VERSION	  25

/* Lists of compute processes, and lists that are empty on the simulated node. */
extern const char *const compute_lists[3];
extern const char *const empty_lists[6];

/* Slice a with two processes on card 0, of 100 and 10 MiB; slice b with one, of 1 GiB. */
struct scene {
	struct slice *a, *b;
	struct tenant *one, *two, *other;
	struct tenant *looker; /* in slice a, without CUDA */
};

/* setting: NAME=VALUE for all of their environments, or NULL. */
struct scene make_scene(struct node *node, const char *setting);

/* Whether the text is in the tenant's last answer. */
bool shows(const struct tenant *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* That the looker's last answer lists one and two, with what they hold. */
void check_rows(const struct scene *s);

/* Lets other and then one work for 0.3 s each, within 0.8 s: figures of the last second have both. */
void make_busy(struct scene *s);

/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of the test's own under $TMPDIR, made before it and removed with all it holds after it. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct scratch {
	char folder[256];
	char file[300]; /* a name in the folder; nothing is there yet */
};

/* Where the tests of another user can look in, too. */
static inline int scratch_setup(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));
	const char *parent = getenv("TMPDIR");

	if (!s)
		return -1;
	snprintf(s->folder, sizeof(s->folder), "%s/vgpu-test-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(s->folder) || chmod(s->folder, 0755) < 0)
		return -1;
	snprintf(s->file, sizeof(s->file), "%s/region", s->folder);
	*state = s;
	return 0;
}

static inline int scratch_remove(
	const char *path, const struct stat *info, int kind, struct FTW *where)
{
	(void)info;
	(void)kind;
	(void)where;
	return remove(path);
}

static inline int scratch_teardown(void **state)
{
	struct scratch *s = *state;

	nftw(s->folder, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

/* A cmocka row of a test that has such a folder as its state. */
#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

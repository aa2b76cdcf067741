/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a slice of vgpu run still has its program. */
#include "node/slice.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "region/process.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

static void note_process(const char *folder, pid_t pid)
{
	struct process_identity seen;
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/lock", folder);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(process_identify(pid, &seen), 0);
	fprintf(file, "%d %" PRIu64 " %" PRIu64 "\n", (int)pid, seen.start_time,
		process_own_namespace());
	fclose(file);
}

static bool is_running(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is = slice_is_running(fd, folder, getuid());

	close(fd);
	return is;
}

/* Where a process is about to be looked at, no descriptor is left. */
static bool take_descriptors(pid_t pid)
{
	struct rlimit none = {0, 4096};

	(void)pid;
	return setrlimit(RLIMIT_NOFILE, &none) == 0;
}

static int look_without_descriptors(int fd, void *argument)
{
	(void)fd;
	process_set_gate(take_descriptors);
	return is_running(argument) ? 0 : 1;
}

static int wait_for_end(int fd, void *argument)
{
	(void)argument;
	child_hear(fd);
	return 0;
}

static void a_slice_whose_program_cannot_be_looked_at_runs(void **state)
{
	struct scratch *s = *state;
	struct child program = child_start(wait_for_end, NULL), looker;

	note_process(s->folder, program.pid);
	assert_true(is_running(s->folder));
	looker = child_start(look_without_descriptors, s->folder);
	assert_int_equal(child_wait(&looker), 0);
	child_kill(&program);
	assert_false(is_running(s->folder));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_slice_whose_program_cannot_be_looked_at_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

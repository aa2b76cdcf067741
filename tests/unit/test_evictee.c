/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process that is to be moved to the host has ended, or cannot be looked at. */
#include "node/evictee.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "region/process.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

static int wait_for_end(int fd, void *argument)
{
	(void)argument;
	child_hear(fd);
	return 0;
}

static void start(struct child *ret_child, struct evictee *ret_evictee)
{
	struct process_identity seen;

	*ret_child = child_start(wait_for_end, NULL);
	assert_int_equal(process_identify(ret_child->pid, &seen), 0);
	*ret_evictee = (struct evictee){.pid = ret_child->pid, .command = "tenant"};
	ret_evictee->process.start_time = seen.start_time;
}

static void one_that_has_ended_is_told_from_one_that_lives(void **state)
{
	struct err err = ERR_NULL;
	struct evictee evictee;
	struct child c;

	(void)state;
	start(&c, &evictee);
	assert_int_equal(evictee_look(&evictee, &err), 0);
	evictee.process.start_time++;
	assert_int_equal(evictee_look(&evictee, &err), EVICTEE_E_ENDED);
	evictee.process.start_time--;
	child_kill(&c);
	assert_int_equal(evictee_look(&evictee, &err), EVICTEE_E_ENDED);
	assert_string_equal(err.text, "");
}

static bool keep_out(pid_t pid)
{
	(void)pid;
	return false;
}

static void one_that_may_not_be_looked_at_has_not_ended(void **state)
{
	struct err err = ERR_NULL;
	struct evictee evictee;
	char begin[64];
	struct child c;

	(void)state;
	start(&c, &evictee);
	process_set_gate(keep_out);
	assert_int_equal(evictee_look(&evictee, &err), -EACCES);
	assert_int_equal(evictee_check(&evictee, NULL, 0, &err), -EACCES);
	process_set_gate(NULL);
	snprintf(begin, sizeof(begin), "process %d (tenant) cannot be looked at: ", (int)c.pid);
	assert_memory_equal(err.text, begin, strlen(begin));
	child_kill(&c);
}

static int look_without_descriptors(int fd, void *argument)
{
	struct rlimit none = {0, 4096};
	struct err err = ERR_NULL;

	(void)fd;
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		return 1;
	return evictee_look(argument, &err) == -EMFILE ? 0 : 2;
}

static void who_has_no_descriptor_takes_nobody_for_ended(void **state)
{
	struct evictee evictee;
	struct child c, looker;

	(void)state;
	start(&c, &evictee);
	looker = child_start(look_without_descriptors, &evictee);
	assert_int_equal(child_wait(&looker), 0);
	child_kill(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_has_ended_is_told_from_one_that_lives),
		cmocka_unit_test(one_that_may_not_be_looked_at_has_not_ended),
		cmocka_unit_test(who_has_no_descriptor_takes_nobody_for_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

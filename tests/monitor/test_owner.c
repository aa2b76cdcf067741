/* SPDX-License-Identifier: Apache-2.0 */
/* The container that a process is in, by the text of its control groups; and the process that is ended. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/audit.h"
#include "monitor/owner.h"
#include "tests/unit/lingering.h"

#define POD    "0f1e2d3c-aaaa-bbbb-cccc-1234567890ab"
#define POD_   "0f1e2d3c_aaaa_bbbb_cccc_1234567890ab"
#define VICTIM "ffffffff-aaaa-bbbb-cccc-1234567890ab"
#define MARK   "7c2a3c19d9f5cf4d21b6f1f3d64a2fb9b5f2c9f3a0f84b1f7a3c19d9f5cf4d21"

static void the_kubelets_groups_are_read(void **state)
{
	static const char *const texts[] = {
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
		".slice/cri-containerd-" MARK ".scope\n",
		"0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" MARK ".scope",
		"12:cpu,cpuacct:/kubepods/besteffort/pod" POD "/" MARK "\n1:name=systemd:/\n0::/\n",
		"0::/../../pod" POD "/" MARK "\n",
		"0::/../../../kubepods-burstable.slice/kubepods-burstable-pod" POD_
		".slice/cri-containerd-" MARK ".scope/inner\n",
		"0::/kubelet.slice/kubelet-kubepods.slice/pod" POD "/" MARK "\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct owner owner = {.uid = ""};

		if (!owner_parse(texts[i], &owner))
			fail_msg("not read: %s", texts[i]);
		assert_string_equal(owner.uid, POD);
		assert_string_equal(owner.mark, MARK);
	}
}

static void what_others_have_made_names_no_pod(void **state)
{
	static const char *const texts[] = {"", "\n", "::", "0::/", "0::/pod", "x",
		"0::/kubepods/pod" POD, "0::/kubepods/pod" POD "/", "0::/kubepods/pod123/" MARK,
		/* a user's own, in the place that a host leaves to him */
		"0::/user.slice/user-1000.slice/user@1000.service/kubepods/pod" VICTIM "/" MARK,
		"0::/system.slice/docker-pod" VICTIM "/" MARK,
		"0::/mallory-pod" VICTIM ".slice/" MARK,
		/* hierarchies that do not agree */
		"2:cpu:/kubepods/pod" POD "/" MARK "\n1:memory:/kubepods/pod" VICTIM "/" MARK "\n",
		/* longer than any name is */
		"0::/kubepods/pod" POD "/" MARK MARK};
	struct owner owner;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (owner_parse(texts[i], &owner))
			fail_msg("read: %s", texts[i]);
	/* what stands behind the container is the container's */
	assert_true(owner_parse(
		"0::/kubepods/pod" POD "/" MARK "/kubepods/pod" VICTIM "/" MARK, &owner));
	assert_string_equal(owner.uid, POD);
}

/* Not that of another start, nor of another container, nor one in no pod. */
static void only_the_process_that_was_seen_is_ended(void **state)
{
	struct process_identity process;
	struct owner owner = {.uid = POD, .mark = MARK}, its;
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(process_identify(child, &process), 0);
	assert_int_equal(owner_end(&process, &owner), -ESRCH);
	if (owner_read(child, &process, &its) == 0) {
		process.start_time++;
		assert_int_equal(owner_end(&process, &its), -ESRCH);
	}
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(owner_end(&process, &owner), -ESRCH);
}

static bool keep_out(pid_t pid)
{
	(void)pid;
	return false;
}

/* Whoever is to be ended has not ended by itself then. */
static void one_that_cannot_be_looked_at_has_not_gone(void **state)
{
	struct owner owner = {.uid = POD, .mark = MARK}, its;
	struct process_identity process;

	assert_int_equal(process_identify(getpid(), &process), 0);
	process_set_gate(keep_out);
	assert_int_equal(owner_read(process.pid, &process, &its), -EACCES);
	assert_int_equal(owner_end(&process, &owner), -EACCES);
	process_set_gate(NULL);
}

static int end_first_thread(int fd, void *argument)
{
	(void)argument;
	lingering_end_first(fd);
	return 1;
}

/* It is in the container that it was in before. */
static void a_process_whose_first_thread_has_ended_is_read_as_any(void **state)
{
	struct child c = child_start(end_first_thread, NULL);
	struct process_identity process;
	struct owner own, its;
	int r = owner_read(getpid(), &process, &own);

	lingering_hear(&c);
	assert_int_equal(owner_read(c.pid, &process, &its), r);
	assert_int_equal(process.pid, c.pid);
	if (r == 0)
		assert_string_equal(its.mark, own.mark);
	child_kill(&c);
	assert_int_equal(owner_read(c.pid, &process, &its), -ESRCH);
}

static void kinds_are_words(void **state)
{
	unsigned kinds;

	assert_true(audit_parse_kinds("untracked,compute", &kinds));
	assert_int_equal(kinds, 1u << AUDIT_UNTRACKED | 1u << AUDIT_COMPUTE);
	assert_true(audit_parse_kinds("", &kinds));
	assert_int_equal(kinds, 0);
	assert_false(audit_parse_kinds("memory,all", &kinds));
	assert_false(audit_parse_kinds("mem", &kinds));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kubelets_groups_are_read),
		cmocka_unit_test(what_others_have_made_names_no_pod),
		cmocka_unit_test(only_the_process_that_was_seen_is_ended),
		cmocka_unit_test(one_that_cannot_be_looked_at_has_not_gone),
		cmocka_unit_test(a_process_whose_first_thread_has_ended_is_read_as_any),
		cmocka_unit_test(kinds_are_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: they live as long as their process's memory, and nothing that it does to its descriptors ends them. */
#include "region/token.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

#define SKIPPED	    77
#define NOBODY	    65534
#define DEADLINE_NS UINT64_C(2000000000)

enum what_then { WAIT, EXEC, FORK, DROP };

struct order {
	struct token token; /* the child's answer */
	enum what_then what_then;
	bool is_nobodys;
	pid_t heir;
};

static int make(int fd, void *argument)
{
	struct order *order = argument;
	const void *page;

	if (order->is_nobodys && setuid(NOBODY) < 0)
		return SKIPPED;
	if (token_make(&order->token, &page) != 0)
		return 1;
	if (order->what_then == FORK) {
		pid_t heir = fork();

		if (heir == 0) {
			prctl(PR_SET_PDEATHSIG, 0);
			pause();
			return 0;
		}
		order->heir = heir;
	}
	child_say(fd, 1);
	child_hear(fd);
	if (order->what_then == EXEC) {
		/* as daemons do */
		for (int i = 3; i < 1024; i++)
			if (i != fd)
				close(i);
		child_say(fd, 1);
		child_hear(fd);
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
		return 2;
	}
	if (order->what_then == DROP) {
		token_drop(page);
		child_say(fd, 1);
		child_hear(fd);
	}
	return 0;
}

/* The order is in memory that parent and child share. */
static struct child start(enum what_then what_then, bool is_nobodys, struct order **ret_order)
{
	struct order *order = child_shared_memory(sizeof(*order));
	struct child c;

	assert_non_null(order);
	*order = (struct order){.what_then = what_then, .is_nobodys = is_nobodys};
	c = child_start(make, order);
	if (child_hear(c.fd) != 1)
		assert_int_equal(child_wait(&c), SKIPPED);
	*ret_order = order;
	return c;
}

/* The kernel takes memory down a moment before or after it tells. */
static void assert_ends(const struct token *token)
{
	uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;

	while (token_look(token) != TOKEN_GONE && clock_now_ns() < deadline_ns)
		sched_yield();
	assert_int_equal(token_look(token), TOKEN_GONE);
}

static void it_ends_with_its_process(void **state)
{
	struct order *order;
	struct child c = start(WAIT, false, &order);

	assert_int_equal(token_look(&order->token), TOKEN_LIVES);
	child_kill(&c);
	assert_ends(&order->token);
	c = start(WAIT, false, &order);
	assert_int_equal(token_look(&order->token), TOKEN_LIVES);
	assert_int_equal(child_wait(&c), 0);
	assert_ends(&order->token);
}

static void it_outlives_all_descriptors_and_ends_at_exec(void **state)
{
	struct order *order;
	struct child c = start(EXEC, false, &order);

	child_say(c.fd, 1);
	child_hear(c.fd);
	assert_int_equal(token_look(&order->token), TOKEN_LIVES);
	child_say(c.fd, 1);
	assert_ends(&order->token);
	assert_int_equal(kill(c.pid, 0), 0);
	child_kill(&c);
}

static void a_child_of_fork_does_not_keep_it(void **state)
{
	struct order *order;
	struct child c = start(FORK, false, &order);

	assert_true(order->heir > 0);
	child_kill(&c);
	assert_int_equal(kill(order->heir, 0), 0);
	assert_ends(&order->token);
	kill(order->heir, SIGKILL);
}

static void it_ends_when_it_is_dropped(void **state)
{
	struct order *order;
	struct child c = start(DROP, false, &order);

	child_say(c.fd, 1);
	child_hear(c.fd);
	assert_int_equal(token_look(&order->token), TOKEN_GONE);
	child_kill(&c);
}

/* Looks as nobody, who may not read the segment. */
static int look(int fd, void *argument)
{
	const struct order *order = argument;

	if (setuid(NOBODY) < 0)
		return SKIPPED;
	return token_look(&order->token) == TOKEN_LIVES ? 0 : 1;
}

static void other_users_see_it(void **state)
{
	struct order *order;
	struct child c = start(WAIT, false, &order), looker;
	struct token false_token = order->token;
	int status;

	looker = child_start(look, order);
	status = child_wait(&looker);
	if (status == SKIPPED) {
		child_kill(&c);
		skip();
	}
	assert_int_equal(status, 0);
	order->token.birth ^= 1;
	looker = child_start(look, order);
	assert_int_equal(child_wait(&looker), 1);
	order->token = false_token;
	child_kill(&c);
	assert_ends(&order->token);
	c = start(WAIT, true, &order);
	assert_int_equal(token_look(&order->token), TOKEN_LIVES);
	child_kill(&c);
}

static void a_number_that_is_used_again_is_another_token(void **state)
{
	struct order *order;
	struct child c = start(WAIT, false, &order);
	struct token earlier = order->token;

	earlier.birth ^= 1;
	assert_int_not_equal(token_look(&earlier), TOKEN_LIVES);
	child_kill(&c);
}

/* Its time changes by that, a second later. */
static void who_touches_it_does_not_end_it(void **state)
{
	struct order *order;
	struct child c = start(WAIT, false, &order);
	int id = (int)(uint32_t)order->token.place;
	struct shmid_ds segment;

	sleep(1);
	assert_int_equal(shmctl(id, IPC_STAT, &segment), 0);
	assert_int_equal(shmctl(id, IPC_SET, &segment), 0);
	assert_int_equal(token_look(&order->token), TOKEN_LIVES);
	child_kill(&c);
	assert_ends(&order->token);
}

static void words_that_no_token_has_are_none(void **state)
{
	static const struct token false_tokens[] = {
		{UINT64_MAX, UINT64_MAX}, {1, 0}, {1, 65535}, {UINT64_MAX, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(false_tokens); i++)
		assert_int_equal(token_look(&false_tokens[i]), TOKEN_GONE);
}

static void nobody_can_attach_anothers(void **state)
{
	struct order *order;
	struct child c = start(WAIT, false, &order);
	struct shmid_ds segment;
	int id = (int)(uint32_t)order->token.place;

	assert_int_equal(shmctl(id, IPC_STAT, &segment), 0);
	assert_int_equal(segment.shm_perm.mode & 0777, 0400);
	assert_int_equal(segment.shm_nattch, 1);
	child_kill(&c);
}

/* In an IPC namespace of its own, where a segment of the same number may be. */
static int look_from_elsewhere(int fd, void *argument)
{
	const struct order *order = argument;
	struct token own;
	const void *page;

	if (unshare(CLONE_NEWIPC) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWIPC) < 0)
		return SKIPPED;
	if (token_make(&own, &page) != 0 || own.place >> 32 == order->token.place >> 32)
		return 1;
	return token_look(&order->token) == TOKEN_UNKNOWN && token_look(&own) == TOKEN_LIVES ? 0
											     : 2;
}

static void from_another_namespace_nothing_is_known(void **state)
{
	struct order *order;
	struct child c = start(WAIT, false, &order), looker;
	int status;

	looker = child_start(look_from_elsewhere, order);
	status = child_wait(&looker);
	child_kill(&c);
	if (status == SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

/* Where the namespace may have no segment at all. */
static int make_without_room(int fd, void *argument)
{
	struct token own;
	const void *page;
	FILE *most;

	if (unshare(CLONE_NEWIPC) < 0)
		return SKIPPED;
	most = fopen("/proc/sys/kernel/shmmni", "w");
	if (!most || fputs("0", most) < 0 || fclose(most) != 0)
		return SKIPPED;
	return token_make(&own, &page) == -ENOSPC ? 0 : 1;
}

static void without_room_there_is_none(void **state)
{
	struct child c = child_start(make_without_room, NULL);
	int status = child_wait(&c);

	if (status == SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_with_its_process),
		cmocka_unit_test(it_outlives_all_descriptors_and_ends_at_exec),
		cmocka_unit_test(a_child_of_fork_does_not_keep_it),
		cmocka_unit_test(it_ends_when_it_is_dropped),
		cmocka_unit_test(other_users_see_it),
		cmocka_unit_test(a_number_that_is_used_again_is_another_token),
		cmocka_unit_test(who_touches_it_does_not_end_it),
		cmocka_unit_test(words_that_no_token_has_are_none),
		cmocka_unit_test(nobody_can_attach_anothers),
		cmocka_unit_test(from_another_namespace_nothing_is_known),
		cmocka_unit_test(without_room_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

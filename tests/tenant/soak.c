/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes of one slice under a random load, some of them killed at random moments and
 * started anew, for two million operations. Judged from outside: the driver never gave the slice
 * more than its quota, whatever the books said; nobody failed for another reason than the quota;
 * and when all are dead, the whole quota is there again.
 */
#include "tests/tenant/tenant.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define CLIENTS	    8
#define OPERATIONS  UINT64_C(2000000) /* finished ones; what the killed did comes on top */
#define A_LOAD	    1000	      /* operations between two answers */
#define KILL_ONE_IN 3		      /* answers */
#define DEADLINE_NS UINT64_C(240000000000)
#define QUOTA	    "6g"
#define QUOTA_BYTES (6 * GIB)

/* Each client takes the next one. */
static const char *const doors[] = {"linked", "dlopen", "next", "procaddr", "procaddr-v1",
	"default", "procaddr-thread", "linked-thread"};

/* Every other process has three threads. */
static void put_to_work(struct tenant *t, unsigned at, unsigned *seed)
{
	tenant_tell(t, "load %u %u %u", (*seed)++, A_LOAD, at % 2 ? 3 : 1);
}

static struct tenant *begin(struct slice *slice, unsigned at, unsigned *seed)
{
	struct node *node = slice->node;
	struct tenant *t;

	/* The table of tenants is for tests that start a few; here its places are used again. */
	node->tenant_count = at;
	t = tenant_start(node, slice, doors[at % (sizeof(doors) / sizeof(doors[0]))], NULL);
	node->tenant_count = CLIENTS;
	/* The others may have taken all there is; they give it back sooner or later. */
	while (tenant_ask(t, "primary 0") == OUT_OF_MEMORY)
		usleep(1000);
	assert_string_equal(t->answer, "");
	put_to_work(t, at, seed);
	return t;
}

static void wait_for_one(struct tenant *t[CLIENTS], struct pollfd ready[CLIENTS])
{
	for (unsigned i = 0; i < CLIENTS; i++)
		ready[i] = (struct pollfd){.fd = t[i]->from_fd, .events = POLLIN};
	poll(ready, CLIENTS, 1000);
}

static void the_quota_outlives_everybody(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", QUOTA, NULL);
	uint64_t start_ns = clock_now_ns(), done = 0, refused = 0, want;
	unsigned seed = 1, kills = 0;
	struct pollfd ready[CLIENTS];
	struct tenant *t[CLIENTS], *last;

	srandom(1);
	for (unsigned i = 0; i < CLIENTS; i++)
		t[i] = begin(slice, i, &seed);
	while (done < OPERATIONS && clock_now_ns() - start_ns < DEADLINE_NS) {
		wait_for_one(t, ready);
		for (unsigned i = 0; i < CLIENTS; i++) {
			if (!ready[i].revents)
				continue;
			assert_int_equal(tenant_answer(t[i]), OK);
			done += tenant_number(t[i], "done");
			refused += tenant_number(t[i], "refused");
			put_to_work(t[i], i, &seed);
			if (random() % KILL_ONE_IN == 0) {
				unsigned victim = (unsigned)random() % CLIENTS;

				usleep((useconds_t)(random() % 2000));
				tenant_kill(t[victim], SIGKILL);
				t[victim] = begin(slice, victim, &seed);
				kills++;
			}
			assert_true(slice_peak(slice, 0) <= QUOTA_BYTES);
		}
	}
	print_message("%llu operations, %llu refused, %u processes killed, peak %llu of %llu MiB\n",
		(unsigned long long)done, (unsigned long long)refused, kills,
		(unsigned long long)(slice_peak(slice, 0) / MIB),
		(unsigned long long)(QUOTA_BYTES / MIB));
	assert_true(done >= OPERATIONS);
	assert_true(refused > 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		tenant_kill(t[i], SIGKILL);
	node->tenant_count = 0;
	last = tenant_new(slice);
	want = (QUOTA_BYTES - CONTEXT_BYTES) / (2 * MIB);
	expect(last, OUT_OF_MEMORY, "fill 2m");
	assert_int_equal(tenant_number(last, "count"), want);
	expect(last, OK, "drop");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(last), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {test_with_node(the_quota_outlives_everybody)};

	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has stood still for a minute does so for ever. A thread that has not left a processor between two looks, and is on none and waits
 * for none at both, has done nothing in between; where that holds of all, for a minute, on the busiest machine, nobody goes on.
 */
#include "tests/clock/still.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STILL_S	  60
#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_US 1000
#define LINE	  128

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* "" where there is no such thread, or it is not for us to know. */
static void read_of(int tid, const char *name, char *ret_text, size_t size)
{
	char path[64];
	ssize_t length = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, ret_text, size - 1);
		close(fd);
	}
	ret_text[length > 0 ? length : 0] = '\0';
}

/* What follows the key, to the end of its line; "" where there is none. */
static void value_of(const char *text, const char *key, char ret_value[LINE])
{
	const char *at = strstr(text, key);

	snprintf(ret_value, LINE, "%.*s", at ? (int)strcspn(at + strlen(key), "\n") : 0,
		at ? at + strlen(key) : "");
}

static int kernel_id(uint64_t owner)
{
	return owner_tid(owner) ? owner_tid(owner) : owner_pid(owner);
}

/* False where a thread runs, wants to, or is held by a debugger. Else how often all of them have left a processor. */
static bool count_switches(struct clock_page *page, uint64_t *ret_switches)
{
	unsigned used = atomic_load(&page->used);
	char text[4096], value[LINE];

	*ret_switches = 0;
	for (unsigned i = 0; i < used; i++) {
		uint64_t owner = atomic_load(&page->threads[i].owner);

		if (owner == 0)
			continue;
		read_of(kernel_id(owner), "status", text, sizeof(text));
		value_of(text, "\nState:\t", value);
		if (value[0] && strchr("RDt", value[0]))
			return false;
		value_of(text, "\nvoluntary_ctxt_switches:\t", value);
		*ret_switches += strtoul(value, NULL, 10);
		value_of(text, "\nnonvoluntary_ctxt_switches:\t", value);
		*ret_switches += strtoul(value, NULL, 10);
	}
	return true;
}

bool still_is_for_ever(struct clock_page *page, unsigned long steps)
{
	static uint64_t looked_ns, switches_then;
	static unsigned long steps_then;
	static unsigned seconds;
	const char *most = getenv(CLOCK_STILL);
	uint64_t switches = switches_then, now_ns = real_ns();

	if (now_ns < looked_ns + NS_PER_S)
		return false;
	looked_ns = now_ns;
	if (steps == steps_then && count_switches(page, &switches) && switches == switches_then)
		seconds++;
	else
		seconds = 0;
	steps_then = steps;
	switches_then = switches;
	return seconds >= (most ? strtoul(most, NULL, 10) : STILL_S);
}

void still_tell(struct clock_page *page, int slot)
{
	static const char *const names[] = {[THREAD_RUNS] = "runs",
		[THREAD_BLOCKED] = "blocked",
		[THREAD_LISTENS] = "listens",
		[THREAD_POLLS] = "polls",
		[THREAD_SLEEPS] = "sleeps"};
	unsigned used = atomic_load(&page->used);
	char text[4096], name[LINE], state[LINE], where[LINE], call[LINE];

	fprintf(stderr, "virtual clock: it stands still, and nothing runs; %s\n",
		slot < 0 ? "all wait, and no wait has an end"
			 : "it waits for the slot with a star");
	for (unsigned i = 0; i < used; i++) {
		struct thread_record *t = &page->threads[i];
		uint64_t owner = atomic_load(&t->owner);
		unsigned said = atomic_load(&t->state);

		if (owner == 0)
			continue;
		read_of(kernel_id(owner), "status", text, sizeof(text));
		value_of(text, "Name:\t", name);
		value_of(text, "\nState:\t", state);
		read_of(kernel_id(owner), "wchan", where, sizeof(where));
		read_of(kernel_id(owner), "syscall", call, sizeof(call));
		call[strcspn(call, "\n")] = '\0';
		fprintf(stderr, "%c slot %u: process %d, thread %d (%s), %s",
			(int)i == slot ? '*' : ' ', i, owner_pid(owner), owner_tid(owner), name,
			names[said]);
		if (said >= THREAD_LISTENS)
			fprintf(stderr, " until %+lld us",
				(long long)(atomic_load(&t->deadline_ns) -
					    atomic_load(&page->now_ns)) /
					NS_PER_US);
		fprintf(stderr, "; the kernel: %s, wchan %s, syscall %s\n",
			state[0] ? state : "gone", where, call);
	}
}

void still_kill_all(struct clock_page *page)
{
	unsigned used = atomic_load(&page->used);

	for (unsigned i = 0; i < used; i++) {
		int pid = owner_pid(atomic_load(&page->threads[i].owner));

		if (pid > 0 && pid != getpid())
			kill(pid, SIGKILL);
	}
}

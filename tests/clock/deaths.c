/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual clock goes on whatever becomes of those that are on it: processes whose threads begin threads and
 * processes, sleep and become other programs are killed and stopped at random moments, and reaped late. It ends, or time
 * stands still.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/stress/random.h"

#define SECONDS	     4
#define AT_ONCE	     2	 /* processes that may be killed */
#define THREADS	     3	 /* of each */
#define LATE_US	     400 /* after its end it is reaped */
#define LIFE_MOST_US 400 /* real */
#define SLEEP_US     20

/* The machine's clock: the other one stands while anything works. */
static uint64_t real_us(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void spin(unsigned us)
{
	uint64_t until_us = real_us() + us;

	while (real_us() < until_us)
		;
}

static void *return_at_once(void *unused)
{
	return NULL;
}

__attribute__((noreturn)) static void *sleep_for_ever(void *unused)
{
	for (;;)
		usleep(SLEEP_US);
}

static void begin_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, return_at_once, NULL) == 0)
		pthread_join(thread, NULL);
}

static void begin_process(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(SLEEP_US);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

__attribute__((noreturn)) static void *work(void *only)
{
	void (*const all[])(void) = {begin_thread, begin_process};
	void (*one)(void) = *(void (*const *)(void))only;

	for (unsigned i = 0;; i++) {
		(one ? one : all[i % 2])();
		usleep(SLEEP_US);
	}
}

/* Of a process with threads that work: one of them ends it, or another process does. */
static void live(unsigned kind, unsigned us)
{
	void (*const only[THREADS])(void) = {begin_thread, begin_process};
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, (void *)&only[i]);
	spin(us);
	if (kind == 0)
		raise(SIGKILL);
	if (kind == 1)
		execl("/proc/self/exe", "deaths", "sleep", (char *)NULL);
	if (kind == 2)
		_exit(0);
	sleep_for_ever(NULL);
}

static void stop(pid_t pid)
{
	kill(pid, SIGSTOP);
	usleep(LATE_US);
	kill(pid, SIGCONT);
}

static void play(struct random *random)
{
	pid_t pids[AT_ONCE];

	for (unsigned i = 0; i < AT_ONCE; i++) {
		unsigned kind = random_below(random, 6), us = random_below(random, LIFE_MOST_US);

		pids[i] = fork();
		if (pids[i] == 0)
			live(kind, us);
	}
	usleep(random_below(random, 4) * SLEEP_US);
	spin(random_below(random, LIFE_MOST_US));
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (pids[i] > 0 && random_below(random, 2))
			stop(pids[i]);
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	usleep(LATE_US);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *seconds = getenv("STRESS_SECONDS");
	struct random random;
	uint64_t until_us = real_us() + (seconds ? strtoul(seconds, NULL, 10) : SECONDS) * 1000000;
	unsigned rounds = 0;

	if (argc > 1)
		sleep_for_ever(NULL);
	random = random_stream(random_seed(), 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (; real_us() < until_us; rounds++)
		play(&random);
	printf("%u rounds\n", rounds);
	return 0;
}

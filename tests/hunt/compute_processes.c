/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads of a program of compute work: they begin, are stopped, and end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/hunt/compute_player.h"

/* One that stops its process does so while no other is in fork(), or the child may begin late on the virtual clock. */
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;

/* A child that goes with its parent. With the lock. */
static pid_t fork_child(void)
{
	pid_t child = fork();

	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

/* As fork_child(), for those that have no lock. */
static pid_t fork_alone(void)
{
	pid_t child;

	pthread_mutex_lock(&fork_lock);
	child = fork_child();
	if (child != 0)
		pthread_mutex_unlock(&fork_lock);
	return child;
}

void player_stop(struct player *p, const struct compute_step *step)
{
	pid_t parent = getpid(), child;
	int ready[2];
	char word = 0;

	MUST(pipe(ready));
	pthread_mutex_lock(&fork_lock);
	child = fork_child();
	if (child == 0) {
		MUST(read(ready[0], &word, 1) != 1);
		kill(parent, SIGSTOP);
		served_sleep(step->us * UINT64_C(1000));
		kill(parent, SIGCONT);
		_exit(0);
	}
	MUST(write(ready[1], &word, 1) != 1);
	if (child > 0)
		waitpid(child, NULL, 0);
	pthread_mutex_unlock(&fork_lock);
	close(ready[0]);
	close(ready[1]);
}

/* What it asks for may be refused, and has to be answered. */
void player_fork(struct player *p, const struct compute_step *step)
{
	pid_t child = fork_alone();

	if (child == 0) {
		alarm(20);
		player_launch(
			p, &(struct compute_step){.op = COMPUTE_launch, .us = 100, .times = 1});
		cuStreamSynchronize(NULL);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void become(uint32_t part, uint32_t times)
{
	char text[2][16];

	snprintf(text[0], sizeof(text[0]), "%u", part);
	snprintf(text[1], sizeof(text[1]), "%u", times);
	setenv(COMPUTE_PART, text[0], 1);
	setenv(COMPUTE_TIMES, text[1], 1);
	execl("/proc/self/exe", "hunt-compute", (char *)NULL);
	_exit(127);
}

void player_begin_process(struct player *p, const struct compute_step *step)
{
	unsigned at = 0;

	for (unsigned i = 0; i < AT_ONCE; i++)
		if (p->processes[i] && waitpid(p->processes[i], NULL, WNOHANG) != 0)
			p->processes[i] = 0;
	while (at < AT_ONCE - 1 && p->processes[at])
		at++;
	if (p->processes[at])
		waitpid(p->processes[at], NULL, 0);
	p->processes[at] = fork_alone();
	if (p->processes[at] == 0)
		become(step->other_part, step->times);
}

static void *play_as_thread(void *argument)
{
	struct player *p = argument;

	player_play(p);
	free(p);
	return NULL;
}

void player_begin_thread(struct player *p, const struct compute_step *step)
{
	struct player *other = calloc(1, sizeof(*other));
	unsigned at = 0;

	while (at < AT_ONCE - 1 && p->is_thread[at])
		at++;
	if (p->is_thread[at])
		pthread_join(p->threads[at], NULL);
	if (!other)
		return;
	*other = (struct player){.program = p->program,
		.part = step->other_part,
		.times = step->times,
		.is_first = p->is_first};
	p->is_thread[at] = pthread_create(&p->threads[at], NULL, play_as_thread, other) == 0;
}

void player_reap(struct player *p, const struct compute_step *step)
{
	for (unsigned i = 0; i < AT_ONCE; i++) {
		if (p->is_thread[i])
			pthread_join(p->threads[i], NULL);
		if (p->processes[i])
			waitpid(p->processes[i], NULL, 0);
		p->is_thread[i] = false;
		p->processes[i] = 0;
	}
}

void player_end_process(struct player *p, const struct compute_step *step)
{
	if (p->is_first)
		return;
	if (step->op == COMPUTE_kill)
		raise(SIGKILL);
	if (step->op == COMPUTE_exec)
		become(p->part, 0);
	exit(0);
}

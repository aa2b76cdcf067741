/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for processes and threads: fork, exec, ends, races, a random load. */
#include "tests/tenant/client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/raw_child.h"
#include "tests/tenant/load/load.h"

#define THREADS_MOST 64

static int run_pid(struct client *c, char **word, unsigned count)
{
	client_say(c, " pid=%d", getpid());
	return 0;
}

/*
 * fork: the child answers this command and takes all that follow; when it ends, the parent answers
 * its last command ("exit" and the like have no answer of their own) with the child's wait status
 * and goes on.
 */
static int go_on_in(struct client *c, pid_t child)
{
	int status = 0;

	if (child < 0)
		return CLIENT_FAILED;
	if (child == 0) {
		client_say(c, " pid=%d", getpid());
		return 0;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	client_say(c, " ended");
	return status;
}

static int run_fork(struct client *c, char **word, unsigned count)
{
	return go_on_in(c, fork());
}

/* clone: the same by the bare system call, of which no library is told */
static int run_clone(struct client *c, char **word, unsigned count)
{
	return go_on_in(c, raw_child());
}

/* exec: the same program anew in this process; the new image answers */
static int run_exec(struct client *c, char **word, unsigned count)
{
	char again[] = "again", door[32];
	char *argv[] = {c->argv[0], door, again, NULL};

	snprintf(door, sizeof(door), "%s", door_name(c->door));
	execv("/proc/self/exe", argv);
	return CLIENT_FAILED;
}

static int run_exit(struct client *c, char **word, unsigned count)
{
	exit((int)client_size(word[1]));
}

static int run_leave(struct client *c, char **word, unsigned count)
{
	_exit((int)client_size(word[1]));
}

static int run_crash(struct client *c, char **word, unsigned count)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return CLIENT_FAILED;
}

/* self: what a guest might have changed in its process */
static int run_self(struct client *c, char **word, unsigned count)
{
	static const char *const wanted[] = {"Umask", "Threads", "SigBlk", "SigIgn", "SigCgt"};
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	int open_fds = 0;

	while (file && fgets(line, sizeof(line), file))
		for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
				client_say(c, " %.*s", (int)strcspn(line, "\n"), line);
	if (file)
		fclose(file);
	for (int fd = 0; fd < 1024; fd++)
		open_fds += fcntl(fd, F_GETFD) >= 0;
	client_say(c, " fds=%d", open_fds);
	return 0;
}

static volatile sig_atomic_t caught;

static void count_signal(int number)
{
	(void)number;
	caught = caught + 1;
}

/* signal NUMBER [default|ignore|own]: claims it, or says whose it is; and what "own" has caught */
static int run_signal(struct client *c, char **word, unsigned count)
{
	int number = (int)client_size(word[1]);
	struct sigaction now, wanted = {.sa_handler = SIG_DFL, .sa_flags = SA_RESTART};

	if (count > 2) {
		if (strcmp(word[2], "ignore") == 0)
			wanted.sa_handler = SIG_IGN;
		else if (strcmp(word[2], "own") == 0)
			wanted.sa_handler = count_signal;
		if (sigaction(number, &wanted, NULL) < 0)
			return CLIENT_FAILED;
	}
	if (sigaction(number, NULL, &now) < 0)
		return CLIENT_FAILED;
	client_say(c, " is=%s caught=%d",
		now.sa_handler == SIG_DFL	 ? "default"
		: now.sa_handler == SIG_IGN	 ? "ignored"
		: now.sa_handler == count_signal ? "own"
						 : "other",
		(int)caught);
	return 0;
}

/* move WHAT PID: a step of a checkpoint of that process, or the state that it is in; "elsewhere": to other devices */
static int run_move(struct client *c, char **word, unsigned count)
{
	CUcheckpointGpuPair pair = {.oldUuid = {{1}}};
	CUcheckpointRestoreArgs elsewhere = {.gpuPairs = &pair, .gpuPairsCount = 1};
	int pid = (int)client_size(word[2]);
	CUprocessState now = CU_PROCESS_STATE_FAILED;
	CUresult r;

	if (strcmp(word[1], "lock") == 0)
		return (int)c->cu.cuCheckpointProcessLock(pid, NULL);
	if (strcmp(word[1], "checkpoint") == 0)
		return (int)c->cu.cuCheckpointProcessCheckpoint(pid, NULL);
	if (strcmp(word[1], "restore") == 0)
		return (int)c->cu.cuCheckpointProcessRestore(pid, NULL);
	if (strcmp(word[1], "elsewhere") == 0)
		return (int)c->cu.cuCheckpointProcessRestore(pid, &elsewhere);
	if (strcmp(word[1], "unlock") == 0)
		return (int)c->cu.cuCheckpointProcessUnlock(pid, NULL);
	r = c->cu.cuCheckpointProcessGetState(pid, &now);
	client_say(c, " state=%d", (int)now);
	return (int)r;
}

static int run_sleep(struct client *c, char **word, unsigned count)
{
	uint64_t ms = client_size(word[1]);
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
	return 0;
}

struct crew {
	struct client *client;
	CUcontext context;
	uint64_t rounds, bytes;
	bool does_keep;
	atomic_ullong done, refused, other;
	pthread_mutex_t lock;
};

static void *crew_work(void *arg)
{
	struct crew *crew = arg;
	struct client *c = crew->client;

	c->cu.cuCtxSetCurrent(crew->context);
	for (uint64_t i = 0; i < crew->rounds; i++) {
		CUdeviceptr p = 0;
		CUresult r = c->cu.cuMemAlloc_v2(&p, crew->bytes);

		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			crew->refused++;
		else if (r != CUDA_SUCCESS)
			crew->other++;
		else
			crew->done++;
		if (r == CUDA_SUCCESS && crew->does_keep) {
			pthread_mutex_lock(&crew->lock);
			client_keep(c, p);
			pthread_mutex_unlock(&crew->lock);
		} else if (r == CUDA_SUCCESS && c->cu.cuMemFree_v2(p) != CUDA_SUCCESS) {
			crew->other++;
		}
	}
	return NULL;
}

/* threads N ROUNDS SIZE [keep]: each of N threads takes SIZE so often, and frees it or keeps it */
static int run_threads(struct client *c, char **word, unsigned count)
{
	struct crew crew = {.client = c,
		.rounds = client_size(word[2]),
		.bytes = client_size(word[3]),
		.does_keep = count > 4,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	unsigned threads = (unsigned)client_size(word[1]);
	pthread_t thread[THREADS_MOST];

	if (threads > THREADS_MOST || c->cu.cuCtxGetCurrent(&crew.context) != CUDA_SUCCESS)
		return CLIENT_FAILED;
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, crew_work, &crew))
			return CLIENT_FAILED;
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	client_say(c, " done=%llu refused=%llu other=%llu", crew.done, crew.refused, crew.other);
	return 0;
}

struct runner {
	struct crew *crew;
	unsigned late_ms;
};

static void *run_late(void *argument)
{
	const struct runner *runner = argument;
	struct crew *crew = runner->crew;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = crew->client->device}};
	CUmemGenericAllocationHandle handle;

	usleep(runner->late_ms * 1000);
	if (crew->client->cu.cuMemCreate(&handle, crew->bytes, &prop, 0) != CUDA_SUCCESS)
		crew->refused++;
	else if (crew->client->cu.cuMemRelease(handle) == CUDA_SUCCESS)
		crew->done++;
	return NULL;
}

/* relay THREADS STEP SIZE: each creates memory so many milliseconds after the one before, and releases it */
static int run_relay(struct client *c, char **word, unsigned count)
{
	struct crew crew = {.client = c, .bytes = client_size(word[3])};
	unsigned threads = (unsigned)client_size(word[1]), step_ms = (unsigned)client_size(word[2]);
	struct runner runner[THREADS_MOST];
	pthread_t thread[THREADS_MOST];

	if (threads > THREADS_MOST)
		return CLIENT_FAILED;
	for (unsigned i = 0; i < threads; i++) {
		runner[i] = (struct runner){&crew, (i + 1) * step_ms};
		if (pthread_create(&thread[i], NULL, run_late, &runner[i]))
			return CLIENT_FAILED;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	client_say(c, " done=%llu refused=%llu", crew.done, crew.refused);
	return 0;
}

/* What racing processes share: who has arrived, and who won how often. */
struct race {
	atomic_uint arrived, winners;
	atomic_uint rounds_with[8]; /* [n]: rounds that n of them won */
};

static void race_meet(struct race *race, unsigned *meeting, unsigned parties)
{
	++*meeting;
	atomic_fetch_add(&race->arrived, 1);
	while (atomic_load(&race->arrived) < *meeting * parties)
		sched_yield();
}

/*
 * race FILE ME PARTIES ROUNDS SIZE: all parties take SIZE at the same instant, and free it; the
 * first says how many rounds had 0, 1, 2, ... winners.
 */
static int run_race(struct client *c, char **word, unsigned count)
{
	unsigned me = (unsigned)client_size(word[2]), parties = (unsigned)client_size(word[3]);
	uint64_t rounds = client_size(word[4]), bytes = client_size(word[5]);
	int fd = open(word[1], O_RDWR | O_CLOEXEC), other = 0;
	struct race *race;
	unsigned meeting = 0;

	if (fd < 0 || parties > 7)
		return CLIENT_FAILED;
	race = mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (race == MAP_FAILED)
		return CLIENT_FAILED;
	for (uint64_t i = 0; i < rounds; i++) {
		CUdeviceptr p = 0;
		CUresult r;

		race_meet(race, &meeting, parties);
		r = c->cu.cuMemAlloc_v2(&p, bytes);
		if (r == CUDA_SUCCESS)
			atomic_fetch_add(&race->winners, 1);
		else if (r != CUDA_ERROR_OUT_OF_MEMORY)
			other = (int)r;
		race_meet(race, &meeting, parties);
		if (me == 0)
			race->rounds_with[atomic_exchange(&race->winners, 0)]++;
		if (r == CUDA_SUCCESS && c->cu.cuMemFree_v2(p) != CUDA_SUCCESS)
			other = CLIENT_FAILED;
	}
	race_meet(race, &meeting, parties);
	for (unsigned i = 0; me == 0 && i <= parties; i++)
		client_say(c, " %u", race->rounds_with[i]);
	munmap(race, sizeof(*race));
	return other;
}

struct load_thread {
	struct client *client;
	CUcontext context;
	uint64_t seed, operations;
	bool is_alone;
	struct load_count count;
	int result;
};

static void *load_work(void *arg)
{
	struct load_thread *t = arg;

	t->client->cu.cuCtxSetCurrent(t->context);
	t->result = load_run(t->client, t->seed, t->operations, t->is_alone, &t->count);
	return NULL;
}

/*
 * load SEED OPERATIONS [THREADS]: see load.h; so many operations in each thread. Where one fails, the
 * answer says in which family and at which operation; the same seed alone comes there again.
 */
static int run_load(struct client *c, char **word, unsigned count)
{
	unsigned threads = count > 3 ? (unsigned)client_size(word[3]) : 1;
	struct load_thread work[THREADS_MOST] = {{0}};
	struct load_count sum = {0};
	pthread_t thread[THREADS_MOST];
	CUcontext context;
	int result = 0;

	if (threads > THREADS_MOST || c->cu.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
		return CLIENT_FAILED;
	for (unsigned i = 0; i < threads; i++) {
		work[i] = (struct load_thread){.client = c,
			.context = context,
			.seed = client_size(word[1]) * THREADS_MOST + i,
			.operations = client_size(word[2]),
			.is_alone = threads == 1};
		if (pthread_create(&thread[i], NULL, load_work, &work[i]))
			return CLIENT_FAILED;
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		sum.done += work[i].count.done;
		sum.refused += work[i].count.refused;
		if (!work[i].result)
			continue;
		result = work[i].result;
		client_say(c, " seed=%s thread=%u family=%s operation=%llu", word[1], i,
			work[i].count.family, (unsigned long long)work[i].count.done);
	}
	client_say(c, " done=%llu refused=%llu", (unsigned long long)sum.done,
		(unsigned long long)sum.refused);
	return result;
}

/* families: those of the load that are used here, and those that are not */
static int run_families(struct client *c, char **word, unsigned count)
{
	for (unsigned i = 0; i < LOAD_FAMILIES; i++)
		client_say(c, " %s%s", load_uses((enum load_family_name)i) ? "" : "no-",
			load_family_text((enum load_family_name)i));
	return 0;
}

const struct client_command client_process_commands[] = {
	{"pid", 0, run_pid, ""},
	{"fork", 0, run_fork, ""},
	{"clone", 0, run_clone, ""},
	{"exec", 0, run_exec, ""},
	{"exit", 1, run_exit, "STATUS"},
	{"_exit", 1, run_leave, "STATUS"},
	{"crash", 0, run_crash, ""},
	{"self", 0, run_self, ""},
	{"signal", 1, run_signal, "NUMBER [default|ignore|own]"},
	{"move", 2, run_move, "lock|checkpoint|restore|elsewhere|unlock|state PID"},
	{"sleep", 1, run_sleep, "MILLISECONDS"},
	{"threads", 3, run_threads, "THREADS ROUNDS SIZE [keep]"},
	{"relay", 3, run_relay, "THREADS STEP SIZE"},
	{"race", 5, run_race, "FILE ME PARTIES ROUNDS SIZE"},
	{"families", 0, run_families, ""},
	{"load", 2, run_load, "SEED OPERATIONS [THREADS]"},
	{0},
};

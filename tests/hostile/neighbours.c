/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbours SLICES [lend] [some] [later] [first] [streams] [processes] PROGRAM...: what each program that means harm costs the other slices of the device.
 * lend: each may use what the others leave, and nothing limits a slice that is alone. some: each fifth program, other ones each day.
 * later: judged when it has been there for a minute, and each of its processes knows its work. first: the program is there before
 * the others, and alone. What it queued then nobody can take back, so it is no more than the half that the driver leaves the
 * others beside it. streams: the others give some of their work to a second stream. processes: another process of theirs works now and then.
 *
 * One slice is the program's, and the others work honestly. At first an honest program is in its slice, too. It is killed,
 * and the other one is begun. Over any ten seconds from then on it must not cost any other slice more than 20 permille of
 * the device, or as many as HOSTILE_COST says, or the table of those of which SECURITY.md says more. One that is killed before takes with it what it did until then.
 */
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/bits.h"
#include "sim/machine/machine.h"
#include "tests/hostile/served.h"
#include "tests/hunt/seed.h"

#define SLICES	       8
#define SETTLE_NS      (2500 * MS) /* until turns have a rhythm */
#define BEFORE_NS      (3000 * MS)
#define LATER_NS       (60000 * MS)
#define STEP_NS	       (100 * MS)
#define STEPS	       120u /* in all: twelve seconds */
#define WINDOW	       100u /* of these steps */
#define COST_PERMILLE  20
#define ALONE_NS       (1000 * MS)
#define HALF_PERMILLE  465 /* of two programs that always work; the rest is changing over */
#define ROLE	       "HOSTILE_ROLE"
#define ROLE_STREAMS   "streams"
#define ROLE_PROCESSES "processes"
#define PAUSE_NS       (20 * MS) /* of the other process */
#define KERNEL_NS      500000u
#define AHEAD	       8u  /* of them, and as many that are under way */
#define SECOND	       32u /* each of so many is the second stream's */
#define SOME	       5u
#define SKIPPED	       77 /* what meson takes for a skipped test */

/* SECURITY.md says so. */
static const struct dearer {
	const char *program;
	unsigned permille;
} dearer[] = {
	{"stream_destroyed_in_capture", 30}, /* kernels of 40 ms that are known as short */
};

struct scene {
	char folder[128];
	struct machine *machine;
	unsigned count;
	bool is_lending, is_later, is_first;
	const char *role;   /* of those that work */
	pid_t pids[SLICES]; /* the first one's is the program that means harm */
	uint64_t busy_ns[SLICES][STEPS + 1];
	uint64_t at_ns[STEPS + 1];
	unsigned before[SLICES];
};

/* Without a limit the simulated driver queues whatever it is given. */
static void keep_short(CUevent *events, unsigned i)
{
	if (i % AHEAD)
		return;
	MUST(cuEventRecord(events[i / AHEAD % 2], NULL));
	MUST(cuEventSynchronize(events[(i / AHEAD + 1) % 2]));
}

static void work_now_and_then(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;) {
		served_launch(kernel, NULL, KERNEL_NS);
		MUST(cuStreamSynchronize(NULL));
		served_sleep(PAUSE_NS);
	}
}

static void work(void)
{
	CUfunction kernel;
	CUevent events[2];
	CUstream second = NULL;

	if (strcmp(getenv(ROLE), ROLE_PROCESSES) == 0 && fork() == 0)
		work_now_and_then();
	served_begin();
	kernel = served_kernel();
	if (strcmp(getenv(ROLE), ROLE_STREAMS) == 0)
		MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 2; i++)
		MUST(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	for (unsigned i = 1;; i++) {
		served_launch(kernel, i % SECOND ? NULL : second, KERNEL_NS);
		keep_short(events, i);
	}
}

static void set(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void set(const char *name, const char *format, ...)
{
	char value[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	MUST(setenv(name, value, 1));
}

/* Of two the other one has more than half. */
static unsigned cores_of(const struct scene *s, unsigned slice)
{
	if (s->count > 2)
		return 96 / s->count;
	return slice ? 60 : 30;
}

static void write_share(const struct scene *s, unsigned slice)
{
	char path[256];
	FILE *share;

	snprintf(path, sizeof(path), "%s/share%u", s->folder, slice);
	share = fopen(path, "w");
	MUST(!share);
	fprintf(share,
		"vgpu-share 1\nslice s%u\nregion %s/region%u\nturns %s/turns\n"
		"device * memory 16g cores %u%s\nend\n",
		slice, s->folder, slice, s->folder, cores_of(s, slice),
		s->is_lending ? " cap 100" : "");
	MUST(fclose(share));
}

static void begin(struct scene *s, unsigned slice, const char *program, const char *role)
{
	char *argv[] = {strdup(program), NULL};
	pid_t pid = fork();

	MUST(pid < 0);
	s->pids[slice] = pid;
	setpgid(pid ? pid : 0, 0);
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	set(ROLE, "%s", role);
	set("LD_LIBRARY_PATH", "%s", getenv("TENANT_DRIVER"));
	set("VGPU_SIM_STATE", "%s/machine", s->folder);
	set("VGPU_SIM_TAG", "s%u", slice);
	set("VGPU_SHARE", "%s/share%u", s->folder, slice);
	set("HOSTILE_TURNS", "%s/turns", s->folder);
	set("LD_PRELOAD", "%s:%s", getenv("TEST_CLOCK_LIBRARY"), getenv("TENANT_LIBRARY"));
	execv(program, argv);
	_exit(127);
}

static void end(struct scene *s, unsigned slice)
{
	kill(-s->pids[slice], SIGKILL);
	while (waitpid(-s->pids[slice], NULL, 0) > 0)
		;
}

static void read_busy(struct scene *s, unsigned step)
{
	struct machine_snapshot *snapshot = malloc(sizeof(*snapshot));

	MUST(!snapshot);
	MUST(machine_read_snapshot(s->machine, 0, snapshot));
	s->at_ns[step] = machine_now_ns();
	for (unsigned slice = 0; slice < s->count; slice++) {
		s->busy_ns[slice][step] = 0;
		for (int i = 0; i < snapshot->process_count; i++)
			if ((unsigned)atoi(snapshot->process[i].tag + 1) == slice)
				s->busy_ns[slice][step] += snapshot->process[i].device[0].busy_ns;
	}
	free(snapshot);
}

static unsigned permille(const struct scene *s, unsigned slice, unsigned from, unsigned to)
{
	return (unsigned)((s->busy_ns[slice][to] - s->busy_ns[slice][from]) * 1000 /
			  (s->at_ns[to] - s->at_ns[from]));
}

/* The slice's part of the worst ten seconds. */
static unsigned worst(const struct scene *s, unsigned slice)
{
	unsigned least = 1000;

	for (unsigned from = 0; from + WINDOW <= STEPS; from++) {
		unsigned part = permille(s, slice, from, from + WINDOW);

		if (part < least)
			least = part;
	}
	return least;
}

static unsigned may_cost(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(dearer); i++)
		if (strcmp(name, dearer[i].program) == 0)
			return dearer[i].permille;
	return COST_PERMILLE;
}

/* How many of the slices the program costs too much. */
static unsigned judge(const struct scene *s, const char *name)
{
	unsigned dear = 0, most = 0, most_at = 1;

	for (unsigned slice = 1; slice < s->count; slice++) {
		unsigned under = worst(s, slice);
		unsigned cost = s->before[slice] > under ? s->before[slice] - under : 0;

		dear += cost > seed_number("HOSTILE_COST", may_cost(name));
		if (cost < most)
			continue;
		most = cost;
		most_at = slice;
	}
	printf("%-32s %u slices: another had %u permille before, and %u of the worst 10 s, its own "
	       "%u%s\n",
		name, s->count, s->before[most_at], worst(s, most_at), permille(s, 0, 0, STEPS),
		dear ? ": TOO FEW" : "");
	if (getenv("HOSTILE_STEPS"))
		for (unsigned i = 0; i < STEPS; i++)
			printf("  %4.1f s: %u %u\n", i / 10.0, permille(s, most_at, i, i + 1),
				permille(s, 0, i, i + 1));
	fflush(stdout);
	return dear;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void begin_honest(struct scene *s, unsigned from)
{
	for (unsigned i = from; i < s->count; i++)
		begin(s, i, "/proc/self/exe", s->role);
	served_sleep(SETTLE_NS);
}

/* The program comes in an honest one's place, and what the others had until then is known. */
static void begin_second(struct scene *s, const char *program)
{
	begin_honest(s, 0);
	read_busy(s, 0);
	served_sleep(BEFORE_NS);
	read_busy(s, 1);
	for (unsigned i = 1; i < s->count; i++)
		s->before[i] = permille(s, i, 0, 1);
	end(s, 0);
	begin(s, 0, program, "attack");
}

static void begin_first(struct scene *s, const char *program)
{
	for (unsigned i = 1; i < s->count; i++)
		s->before[i] = HALF_PERMILLE / (s->count - 1);
	begin(s, 0, program, "attack");
	served_sleep(ALONE_NS);
	begin_honest(s, 1);
}

static unsigned harm(const char *program, const struct scene *how)
{
	struct scene s = *how;
	const char *tmp = getenv("TMPDIR"), *name = strstr(program, "hostile-");
	char path[256], why[256] = "";
	unsigned dear;

	snprintf(s.folder, sizeof(s.folder), "%s/neighbours-XXXXXX", tmp ? tmp : "/tmp");
	MUST(!mkdtemp(s.folder));
	MUST(chmod(s.folder, 0755));
	snprintf(path, sizeof(path), "%s/machine", s.folder);
	MUST(machine_open(path, "h200", &s.machine, why, sizeof(why)));
	for (unsigned i = 0; i < s.count; i++)
		write_share(&s, i);
	if (s.is_first)
		begin_first(&s, program);
	else
		begin_second(&s, program);
	if (s.is_later)
		served_sleep(LATER_NS);
	for (unsigned i = 0; i <= STEPS; i++) {
		read_busy(&s, i);
		served_sleep(STEP_NS);
	}
	for (unsigned i = 0; i < s.count; i++)
		end(&s, i);
	dear = judge(&s, name ? name + strlen("hostile-") : program);
	machine_close(s.machine);
	nftw(s.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return dear;
}

int main(int argc, char **argv)
{
	struct scene how = {.count = argc > 1 ? (unsigned)atoi(argv[1]) : 0, .role = "work"};
	unsigned dear = 0, each = 1, today = 0;
	int first = 2;

	if (getenv(ROLE)) {
		work();
		return 1;
	}
	if (!getenv("TENANT_DRIVER") || !getenv("TEST_CLOCK_LIBRARY")) {
		printf("neighbours: skipped, it needs the simulated node on a virtual clock\n");
		return SKIPPED;
	}
	MUST(how.count < 2 || how.count > SLICES);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (; first < argc && !strchr(argv[first], '/'); first++) {
		if (strcmp(argv[first], "lend") == 0)
			how.is_lending = true;
		else if (strcmp(argv[first], "later") == 0)
			how.is_later = true;
		else if (strcmp(argv[first], "first") == 0)
			how.is_first = true;
		else if (strcmp(argv[first], ROLE_STREAMS) == 0 ||
			 strcmp(argv[first], ROLE_PROCESSES) == 0)
			how.role = argv[first];
		else
			each = SOME;
	}
	if (each > 1)
		today = (unsigned)(seed_of_today() % each);
	for (int i = first; i < argc; i++)
		if ((unsigned)(i - first) % each == today)
			dear += harm(argv[i], &how);
	return dear != 0;
}

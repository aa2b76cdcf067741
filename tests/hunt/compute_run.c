/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program of compute work in a slice on a simulated machine of its own, and reads what it was served. */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "region/layout.h"
#include "sim/machine/machine.h"
#include "tests/hostile/served.h"
#include "tests/hunt/compute.h"

#define SETTLE_NS	(300 * MS)  /* until contexts are made, and the first debts paid */
#define SETTLE_PEERS_NS (1500 * MS) /* until turns have found a rhythm */
#define LOOK_NS		(50 * MS)
#define REAL_NS		(8000 * MS) /* what takes longer on the machine's clock is cut short; */
#define WINDOW_LEAST_NS (500 * MS)  /* of less than that nothing is told */
#define PEER		"peer"

/* A card whose memory is so slow that a copy of a megabyte takes about two milliseconds. */
#define BOARD "base = h200\nmemory_bus_bits = 8\nclock_memory_mhz = 500\n"

struct scene {
	const struct compute_program *program;
	char folder[128];
	struct machine *machine;
	pid_t pid, peer_pid;
};

static uint64_t real_now_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void enter_slice(const struct scene *s, const char *name)
{
	const char *clock = getenv("TEST_CLOCK_LIBRARY");
	bool is_peer = strcmp(name, PEER) == 0;
	char path[256], preload[1024];
	FILE *share;

	snprintf(path, sizeof(path), "%s/%s", s->folder, name);
	share = fopen(path, "w");
	MUST(!share);
	fprintf(share, "vgpu-share 1\nslice %s\nregion %s/%s-region\n", name, s->folder, name);
	if (s->program->peer_percent)
		fprintf(share, "turns %s/turns\n", s->folder);
	fprintf(share, "device * memory 16g cores %u\nend\n",
		is_peer ? s->program->peer_percent : s->program->cap_percent);
	MUST(fclose(share));
	MUST(setenv("VGPU_SHARE", path, 1));
	snprintf(preload, sizeof(preload), "%s%s%s", clock ? clock : "", clock ? ":" : "",
		getenv("TENANT_LIBRARY"));
	MUST(setenv("LD_PRELOAD", preload, 1));
}

static pid_t start(const struct scene *s, const char *name, bool is_in_slice)
{
	char text[COMPUTE_TEXT], path[256];
	pid_t pid = fork();

	MUST(pid < 0);
	if (pid > 0) {
		setpgid(pid, pid);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	compute_print(s->program, text);
	snprintf(path, sizeof(path), "%s/machine", s->folder);
	MUST(setenv(COMPUTE_PROGRAM, text, 1));
	MUST(setenv(COMPUTE_PART, strcmp(name, PEER) == 0 ? PEER : "0", 1));
	MUST(setenv("LD_LIBRARY_PATH", getenv("TENANT_DRIVER"), 1));
	MUST(setenv("VGPU_SIM_STATE", path, 1));
	MUST(setenv("VGPU_SIM_TAG", name, 1));
	if (is_in_slice)
		enter_slice(s, name);
	execl("/proc/self/exe", "hunt-compute", (char *)NULL);
	_exit(127);
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
}

/* Served since the machine began; the peer's process lives as long as it is looked at. */
static void read_served(const struct scene *s, uint64_t *ret_ns, uint64_t *ret_peer_ns)
{
	static struct machine_snapshot snapshot;

	MUST(machine_read_snapshot(s->machine, 0, &snapshot));
	*ret_peer_ns = 0;
	for (int i = 0; i < snapshot.process_count; i++)
		if (strcmp(snapshot.process[i].tag, PEER) == 0)
			*ret_peer_ns += snapshot.process[i].device[0].busy_ns;
	*ret_ns = snapshot.device[0].busy_ns - *ret_peer_ns;
}

static uint64_t read_charged(const struct scene *s)
{
	static struct region_file region;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/slice-region", s->folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, &region, sizeof(region)) != sizeof(region))
		region.own.compute[0].busy_ns = 0;
	close(fd);
	return atomic_load(&region.own.compute[0].busy_ns);
}

static struct compute_figures look(const struct scene *s)
{
	struct compute_figures f = {.window_ns = machine_now_ns()};

	read_served(s, &f.served_ns, &f.peer_served_ns);
	f.charged_ns = read_charged(s);
	f.is_alive = waitpid(s->pid, NULL, WNOHANG) == 0;
	return f;
}

/* False where it took too long on the machine's clock. */
static bool let_pass(uint64_t ns, uint64_t real_until_ns)
{
	for (uint64_t slept_ns = 0; slept_ns < ns; slept_ns += LOOK_NS) {
		if (real_now_ns() > real_until_ns)
			return false;
		served_sleep(LOOK_NS);
	}
	return true;
}

static struct compute_figures watch(const struct scene *s, uint64_t window_ns)
{
	uint64_t real_until_ns = real_now_ns() + REAL_NS;
	struct compute_figures before, after;
	bool is_told =
		let_pass(s->program->peer_percent ? SETTLE_PEERS_NS : SETTLE_NS, real_until_ns);

	before = look(s);
	if (!let_pass(WINDOW_LEAST_NS, real_until_ns))
		is_told = false;
	else
		let_pass(window_ns - WINDOW_LEAST_NS, real_until_ns);
	after = look(s);
	after.is_told = is_told;
	after.window_ns -= before.window_ns;
	after.served_ns -= before.served_ns;
	after.charged_ns -= before.charged_ns;
	after.peer_served_ns -= before.peer_served_ns;
	return after;
}

static void open_machine(struct scene *s)
{
	char path[256], board[256], why[256] = "";
	FILE *file;

	snprintf(board, sizeof(board), "%s/own.board", s->folder);
	file = fopen(board, "w");
	MUST(!file || fputs(BOARD, file) < 0 || fclose(file) != 0);
	snprintf(path, sizeof(path), "%s/machine", s->folder);
	MUST(machine_open(path, board, &s->machine, why, sizeof(why)));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

struct compute_figures compute_run(
	const struct compute_program *p, bool is_in_slice, uint64_t window_ns)
{
	const char *tmp = getenv("TMPDIR");
	struct scene s = {.program = p};
	struct compute_figures f;
	char path[256];

	snprintf(s.folder, sizeof(s.folder), "%s/hunt-XXXXXX", tmp ? tmp : "/tmp");
	MUST(!mkdtemp(s.folder));
	snprintf(path, sizeof(path), "%s/turns", s.folder);
	MUST(mkdir(path, 0700));
	open_machine(&s);
	if (p->peer_percent && is_in_slice)
		s.peer_pid = start(&s, PEER, true);
	s.pid = start(&s, "slice", is_in_slice);
	f = watch(&s, window_ns);
	end(s.pid);
	end(s.peer_pid);
	machine_close(s.machine);
	nftw(s.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return f;
}

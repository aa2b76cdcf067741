/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that want more of a device's time: what they have in common, and the judge. */
#include "tests/hostile/served.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "sim/machine/inject.h"
#include "sim/machine/machine.h"

#define SKIPPED	  77	     /* what meson takes for a skipped test */
#define SETTLE_NS (300 * MS) /* until contexts are made, and the first debts paid */
#define LOOK_NS	  (5 * MS)
#define LOOKS	  1000 /* in all: five seconds */
#define ROLE	  "HOSTILE_ROLE"

void served_sleep(uint64_t ns)
{
	struct timespec rest = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&rest, &rest) < 0)
		;
}

CUfunction served_kernel(void)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry busy(\n\t.param .u64 duration_ns\n)\n{ ret; }\n";
	CUfunction kernel;
	CUmodule module;

	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&kernel, module, "busy"));
	return kernel;
}

CUcontext served_begin(void)
{
	MUST(cuInit(0));
	return served_context();
}

CUcontext served_context(void)
{
	CUcontext context;

	MUST(cuCtxCreate_v2(&context, 0, 0));
	return context;
}

CUgraphExec served_graph(CUfunction kernel, uint64_t ns)
{
	void *parameters[] = {&ns};
	CUDA_KERNEL_NODE_PARAMS_v2 node = hostile_node(kernel, NULL);
	CUgraphExec graph;
	CUgraphNode made;
	CUgraph nodes;

	node.kernelParams = parameters;
	MUST(cuGraphCreate(&nodes, 0));
	MUST(cuGraphAddKernelNode_v2(&made, nodes, NULL, 0, &node));
	MUST(cuGraphInstantiateWithFlags(&graph, nodes, 0));
	return graph;
}

void served_launch(CUfunction kernel, CUstream stream, uint64_t ns)
{
	void *parameters[] = {&ns};

	MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

/* Of the judge: what the child is started with. */
static void start(const struct served *program, const char *folder, bool is_in_slice, char **argv)
{
	const char *clock = getenv("TEST_CLOCK_LIBRARY");
	char path[256], preload[1024];
	FILE *share;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	MUST(setenv(ROLE, "attack", 1));
	MUST(setenv("LD_LIBRARY_PATH", getenv("TENANT_DRIVER"), 1));
	snprintf(path, sizeof(path), "%s/machine", folder);
	MUST(setenv("VGPU_SIM_STATE", path, 1));
	if (is_in_slice) {
		snprintf(path, sizeof(path), "%s/share", folder);
		share = fopen(path, "w");
		MUST(!share);
		fprintf(share,
			"vgpu-share 1\nslice hostile\nregion %s/region\n%s\n"
			"device * memory 16g cores %u\nend\n",
			folder, program->terms ? program->terms : "", program->cap_percent);
		MUST(fclose(share));
		MUST(setenv("VGPU_SHARE", path, 1));
		snprintf(preload, sizeof(preload), "%s%s%s", clock ? clock : "", clock ? ":" : "",
			getenv("TENANT_LIBRARY"));
		MUST(setenv("LD_PRELOAD", preload, 1));
		if (program->setting)
			MUST(putenv(strdup(program->setting)));
	}
	execv("/proc/self/exe", argv);
	_exit(127);
}

static uint64_t served_ns(struct machine *machine)
{
	struct machine_snapshot *snapshot = malloc(sizeof(*snapshot));
	uint64_t ns;

	MUST(!snapshot);
	MUST(machine_read_snapshot(machine, 0, snapshot));
	ns = snapshot->device[0].busy_ns;
	free(snapshot);
	return ns;
}

/* How much of a window the program was served at most, in permille. */
static unsigned watch(const struct served *program, struct machine *machine)
{
	unsigned step = (unsigned)(program->window_ms * MS / LOOK_NS), most = 0;
	uint64_t at_ns[LOOKS + 1], busy_ns[LOOKS + 1];

	if (!step)
		step = LOOKS;
	for (unsigned i = 0; i <= LOOKS; i++) {
		at_ns[i] = machine_now_ns();
		busy_ns[i] = served_ns(machine);
		if (i >= step &&
			(busy_ns[i] - busy_ns[i - step]) * 1000 / (at_ns[i] - at_ns[i - step]) >
				most)
			most = (unsigned)((busy_ns[i] - busy_ns[i - step]) * 1000 /
					  (at_ns[i] - at_ns[i - step]));
		served_sleep(LOOK_NS);
	}
	return most;
}

/* False where the program ended before its time. */
static bool run(const struct served *program, const char *folder, struct machine *machine,
	bool is_in_slice, char **argv, unsigned *ret_permille)
{
	bool is_done;
	pid_t pid = fork();

	MUST(pid < 0);
	if (pid == 0)
		start(program, folder, is_in_slice, argv);
	setpgid(pid, pid);
	served_sleep(program->settle_ms ? program->settle_ms * MS : SETTLE_NS);
	*ret_permille = watch(program, machine);
	is_done = waitpid(pid, NULL, WNOHANG) == 0;
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	return is_done;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int judge(const struct served *program, const char *name, char **argv, const char *folder)
{
	unsigned allowance = program->allowance_permille ? program->allowance_permille : 10;
	unsigned most = program->cap_percent * 10 + allowance, free_permille, permille;
	struct inject_rule slow = {.tag = "*", .delay_ns = 3 * MS};
	struct machine *machine;
	char path[256], why[256] = "";
	bool is_done;

	snprintf(path, sizeof(path), "%s/machine", folder);
	if (machine_open(path, "h200", &machine, why, sizeof(why)) != 0) {
		printf("%s: no simulated machine: %s\n", name, why);
		return 1;
	}
	if (program->slow_call) {
		snprintf(slow.symbol, sizeof(slow.symbol), "%s", program->slow_call);
		MUST(inject_add_rule(machine, &slow) < 0);
	}
	is_done = run(program, folder, machine, false, argv, &free_permille) &&
		  run(program, folder, machine, true, argv, &permille);
	machine_close(machine);
	if (!is_done) {
		printf("%s: the program could not do its work\n", name);
		return 1;
	}
	printf("%s: cap %u %%, served %u.%u %% (%u.%u %% without the library)\n", name,
		program->cap_percent, permille / 10, permille % 10, free_permille / 10,
		free_permille % 10);
	if (free_permille <= most)
		printf("%s: this is no way above the cap\n", name);
	if (permille < program->least_permille)
		printf("%s: it is charged too much\n", name);
	return permille > most || permille < program->least_permille || free_permille <= most;
}

int served_main(char **argv, const struct served *program)
{
	const char *tmp = getenv("TMPDIR"), *name = strrchr(argv[0], '/');
	char folder[128];
	int status;

	name = name ? name + 1 : argv[0];
	if (strncmp(name, "hostile-", 8) == 0)
		name += 8;
	if (getenv(ROLE)) {
		program->attack();
		return 1;
	}
	if (!getenv("TENANT_DRIVER") || !getenv("TEST_CLOCK_LIBRARY")) {
		printf("%s: skipped, it needs the simulated node on a virtual clock\n", name);
		return SKIPPED;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(folder, sizeof(folder), "%s/hostile-XXXXXX", tmp ? tmp : "/tmp");
	MUST(!mkdtemp(folder));
	status = judge(program, name, argv, folder);
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}

int served_beside_main(void (*attack)(void))
{
	if (!getenv(ROLE))
		return SKIPPED;
	attack();
	return 1;
}

static void run_kernel(uint64_t ns, bool is_killed)
{
	served_begin();
	served_launch(served_kernel(), NULL, ns);
	served_sleep(ns);
	if (is_killed)
		raise(SIGKILL);
	_exit(0);
}

void served_process_per_kernel(uint64_t kernel_ns)
{
	for (unsigned i = 0;; i++) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0)
			run_kernel(kernel_ns, i % 2);
		MUST(waitpid(pid, NULL, 0) != pid);
	}
}

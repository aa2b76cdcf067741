/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that want more of a device's time: what they have in common, and the judge. */
#include "tests/hostile/served.h"

#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "sim/machine/inject.h"
#include "sim/machine/machine.h"
#include "tests/hostile/counted.h"

#define SKIPPED	  77 /* what meson takes for a skipped test */
#define SETTLE_NS (300 * MS)
#define LOOK_NS	  (5 * MS)
#define LOOKS	  1000 /* in all: five seconds */
#define ROLE	  "HOSTILE_ROLE"

/* Of the library, for streams; and pieces of work after which a kernel's time is known. */
#define PLACES		  128
#define PLACES_OF_CONTEXT 120
#define KNOWN		  40
#define SHORT_NS	  20000

/* A card is there for a while, and begins slowly. */
#define CARD_FREE_LOOKS 2400
#define CARD_FREE_STEP	200
#define LOOKS_MOST	CARD_FREE_LOOKS
#define CARD_BEGIN_NS	(20000 * MS)
#define CARD_CROWD_NS	(1700 * MS)
#define CARD_OWED_NS	(2000 * MS) /* what was given before anybody knew its time is paid for */
#define CARD_MEMORY	"64g"

struct judge {
	const struct served *program;
	const char *name;
	char folder[128];
	struct machine *machine; /* NULL: on a card */
	struct counted *counted; /* NULL: on the simulated node */
};

void served_sleep(uint64_t ns)
{
	struct timespec rest = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&rest, &rest) < 0)
		;
}

CUfunction served_kernel(void)
{
	return counted_kernel();
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

void served_make_known(CUfunction kernel, unsigned times, uint64_t ns)
{
	for (unsigned i = 0; i < times; i++) {
		served_launch(kernel, NULL, ns);
		MUST(cuStreamSynchronize(NULL));
	}
}

CUgraphExec served_graph(CUfunction kernel, uint64_t ns)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node = counted_node(kernel, ns);
	CUgraphExec graph;
	CUgraphNode made;
	CUgraph nodes;

	MUST(cuGraphCreate(&nodes, 0));
	MUST(cuGraphAddKernelNode_v2(&made, nodes, NULL, 0, &node));
	MUST(cuGraphInstantiateWithFlags(&graph, nodes, 0));
	return graph;
}

void served_launch(CUfunction kernel, CUstream stream, uint64_t ns)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node = counted_node(kernel, ns);

	MUST(cuLaunchKernel(kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, stream,
		node.kernelParams, NULL));
}

struct cards {
	int count;
	CUuuid first;
};

/* A process that ends asks the driver: whoever has begun with it may not fork. */
static struct cards ask_cards(void)
{
	struct cards *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		     cards;
	pid_t asker;

	MUST(told == MAP_FAILED);
	asker = fork();
	MUST(asker < 0);
	if (asker == 0)
		_exit(cuInit(0) != CUDA_SUCCESS ||
			cuDeviceGetUuid(&told->first, 0) != CUDA_SUCCESS ||
			cuDeviceGetCount(&told->count) != CUDA_SUCCESS);
	MUST(waitpid(asker, NULL, 0) != asker);
	cards = *told;
	MUST(munmap(told, sizeof(*told)));
	return cards;
}

/* Whose kernels are counted. */
static void print_capped(const struct judge *j, FILE *share, const char *memory)
{
	char uuid[MACHINE_UUID_SIZE] = "*";
	uint8_t bytes[16];

	if (j->program->is_other_free) {
		if (j->machine)
			board_uuid(machine_board(j->machine), 0, bytes);
		else
			memcpy(bytes, ask_cards().first.bytes, sizeof(bytes));
		machine_uuid_text(bytes, uuid);
		fprintf(share, "device * memory %s\n", memory);
	}
	fprintf(share, "device %s memory %s cores %u\n", uuid, memory, j->program->cap_percent);
}

/* Of the judge: what the child is started with. */
static void start(const struct judge *j, bool is_in_slice, char **argv)
{
	const char *clock = getenv("TEST_CLOCK_LIBRARY"), *driver = getenv("TENANT_DRIVER");
	const struct served *program = j->program;
	char path[256], preload[1024];
	FILE *share;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	MUST(setenv(ROLE, "attack", 1));
	if (driver) {
		MUST(setenv("LD_LIBRARY_PATH", driver, 1));
		snprintf(path, sizeof(path), "%s/machine", j->folder);
		MUST(setenv("VGPU_SIM_STATE", path, 1));
	}
	if (is_in_slice) {
		snprintf(path, sizeof(path), "%s/share", j->folder);
		share = fopen(path, "w");
		MUST(!share);
		fprintf(share, "vgpu-share 1\nslice hostile\nregion %s/region\n%s\n", j->folder,
			program->terms ? program->terms : "");
		print_capped(j, share, driver ? "16g" : CARD_MEMORY);
		fprintf(share, "end\n");
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

static uint64_t served_ns(const struct judge *j)
{
	struct machine_snapshot *snapshot;
	uint64_t ns;

	if (j->counted)
		return atomic_load(&j->counted->served_ns);
	snapshot = malloc(sizeof(*snapshot));
	MUST(!snapshot);
	MUST(machine_read_snapshot(j->machine, 0, snapshot));
	ns = snapshot->device[0].busy_ns;
	free(snapshot);
	return ns;
}

/* On a card a window may begin and end within what was given at once, and nobody chooses where: so much of it. */
static unsigned edge_permille(const struct judge *j)
{
	const struct served *program = j->program;
	uint64_t window_ns = program->window_ms ? program->window_ms * MS : LOOKS * LOOK_NS;
	unsigned crowd;

	if (!j->counted)
		return 0;
	crowd = atomic_load(&j->counted->crowd);
	return (unsigned)(atomic_load(&j->counted->longest_ns) * 1000 * (crowd ? crowd : 1) /
			  window_ns);
}

static unsigned limit_permille(const struct judge *j)
{
	const struct served *program = j->program;
	unsigned allowance = program->allowance_permille ? program->allowance_permille : 10;
	unsigned under_way = 10 + edge_permille(j);

	return program->cap_percent * 10 + (under_way > allowance ? under_way : allowance);
}

static unsigned least_permille(const struct judge *j)
{
	unsigned least = j->program->least_permille, under_way = edge_permille(j);

	if ((j->counted && j->program->idles_card) || least < under_way)
		return 0;
	return least - under_way;
}

/* Until contexts are made, and the first debts paid. False where a card has nothing to do. */
static bool settle(const struct judge *j, bool is_in_slice)
{
	uint64_t ns = j->program->settle_ms ? j->program->settle_ms * MS : SETTLE_NS;
	uint64_t begin_ns = clock_now_ns(), work_ns;

	if (j->counted) {
		while (!atomic_load(&j->counted->rate) || !served_ns(j)) {
			if (clock_now_ns() - begin_ns > CARD_BEGIN_NS)
				return false;
			served_sleep(LOOK_NS);
		}
		work_ns = clock_now_ns() - begin_ns;
		if (!is_in_slice)
			ns = 0;
		else if (atomic_load(&j->counted->crowd))
			ns += CARD_CROWD_NS;
		else if (least_permille(j))
			ns = ns > work_ns + CARD_OWED_NS ? ns - work_ns : CARD_OWED_NS;
		else if (j->program->settle_ms)
			ns = ns > work_ns ? ns - work_ns : 0;
	}
	served_sleep(ns);
	return true;
}

/*
 * How much of a window the program was served at most, in permille. Without the library until it is known to be more than the cap, so far in a
 * window that has not ended: many ways give work without an end, each piece of which takes real time.
 */
static unsigned watch(const struct judge *j, bool is_in_slice)
{
	static uint64_t at_ns[LOOKS_MOST + 1], busy_ns[LOOKS_MOST + 1];
	bool is_brief = j->counted && !is_in_slice;
	unsigned looks = is_brief ? CARD_FREE_LOOKS : LOOKS, limit = limit_permille(j);
	unsigned step = (unsigned)(j->program->window_ms * MS / LOOK_NS), most = 0;

	if (is_brief)
		step = CARD_FREE_STEP;
	else if (!step)
		step = looks;
	for (unsigned i = 0; i <= looks; i++) {
		unsigned from = i >= step ? i - step : 0;
		uint64_t served;

		at_ns[i] = clock_now_ns();
		busy_ns[i] = served_ns(j);
		served = (busy_ns[i] - busy_ns[from]) * 1000;
		if (i >= step || (i > 0 && !is_in_slice && !j->counted &&
					 served > (limit + 1) * step * LOOK_NS)) {
			unsigned permille = (unsigned)(served / (at_ns[i] - at_ns[from]));

			most = permille > most ? permille : most;
		}
		if (!is_in_slice && most > limit)
			break;
		served_sleep(LOOK_NS);
	}
	return most;
}

/* False where the program ended before its time. */
static bool run(const struct judge *j, bool is_in_slice, char **argv, unsigned *ret_permille)
{
	bool is_done;
	pid_t pid;

	if (j->counted) {
		atomic_store(&j->counted->served_ns, 0);
		atomic_store(&j->counted->longest_ns, 0);
	}
	pid = fork();
	MUST(pid < 0);
	if (pid == 0)
		start(j, is_in_slice, argv);
	setpgid(pid, pid);
	is_done = settle(j, is_in_slice);
	if (is_done)
		*ret_permille = watch(j, is_in_slice);
	is_done = waitpid(pid, NULL, WNOHANG) == 0 && is_done;
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	return is_done;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static bool is_of_two(const struct served *program)
{
	return program->is_of_two || program->is_other_free;
}

static struct machine *open_machine(const struct judge *j)
{
	struct inject_rule slow = {.tag = "*", .delay_ns = 3 * MS};
	char path[256], why[256] = "";
	struct machine *machine;

	snprintf(path, sizeof(path), "%s/machine", j->folder);
	if (machine_open(path, is_of_two(j->program) ? "h200x2" : "h200", &machine, why,
		    sizeof(why)) != 0) {
		printf("%s: no simulated machine: %s\n", j->name, why);
		return NULL;
	}
	if (j->program->fills_device)
		inject_let_kernels_fill(machine);
	if (j->program->slow_call) {
		snprintf(slow.symbol, sizeof(slow.symbol), "%s", j->program->slow_call);
		MUST(inject_add_rule(machine, &slow) < 0);
	}
	return machine;
}

static int judge(struct judge *j, char **argv)
{
	const struct served *program = j->program;
	unsigned free_permille, permille, most, least;

	if (!run(j, false, argv, &free_permille) || !run(j, true, argv, &permille)) {
		printf("%s: the program could not do its work\n", j->name);
		return 1;
	}
	most = limit_permille(j);
	least = least_permille(j);
	printf("%s: cap %u %%, served %u.%u %% (%u.%u %% without the library)\n", j->name,
		program->cap_percent, permille / 10, permille % 10, free_permille / 10,
		free_permille % 10);
	if (free_permille <= most)
		printf("%s: this is no way above the cap%s\n", j->name,
			j->counted ? " on this card" : "");
	if (permille > most)
		printf("%s: it may be served %u.%u %%\n", j->name, most / 10, most % 10);
	if (permille < least)
		printf("%s: it is charged too much, at least %u.%u %% is its own\n", j->name,
			least / 10, least % 10);
	if (j->counted && free_permille <= most && permille <= most)
		return SKIPPED;
	return permille > most || permille < least || free_permille <= most;
}

/* NULL where it can be judged. */
static const char *why_skipped(const struct served *program)
{
	bool is_card = counted_is_on_card();

	if (!is_card && !getenv("TEST_CLOCK_LIBRARY"))
		return "it needs a card, or the simulated node on a virtual clock";
	if (is_card && program->is_of_two)
		return "it needs two simulated devices";
	if (is_card && program->is_other_free && ask_cards().count < 2)
		return "it needs two devices";
	if (is_card && program->slow_call && !program->is_slow_on_card)
		return "it needs a driver's call that is slow";
	return program->needs ? program->needs() : NULL;
}

int served_main(char **argv, const struct served *program)
{
	const char *tmp = getenv("TMPDIR"), *name = strrchr(argv[0], '/'), *why;
	struct judge j = {.program = program};
	int status = 1;

	j.name = name ? name + 1 : argv[0];
	if (strncmp(j.name, "hostile-", 8) == 0)
		j.name += 8;
	if (getenv(ROLE)) {
		program->attack();
		return 1;
	}
	why = why_skipped(program);
	if (why) {
		printf("%s: skipped, %s\n", j.name, why);
		return SKIPPED;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(j.folder, sizeof(j.folder), "%s/hostile-XXXXXX", tmp ? tmp : "/tmp");
	MUST(!mkdtemp(j.folder));
	if (counted_is_on_card())
		j.counted = counted_make();
	else
		j.machine = open_machine(&j);
	if (j.counted || j.machine)
		status = judge(&j, argv);
	if (j.machine)
		machine_close(j.machine);
	nftw(j.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}

/* Short work in so many streams of a context, behind the event. */
static void fill_context(unsigned streams, CUevent event)
{
	CUfunction kernel;
	CUstream stream;

	served_context();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (unsigned i = 0; i < streams; i++) {
		MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		MUST(cuStreamWaitEvent(stream, event, 0));
		served_launch(kernel, stream, SHORT_NS);
	}
}

void served_fill_places(unsigned more)
{
	CUcontext context;
	CUevent event;

	MUST(cuCtxCreate_v2(&context, 0, 1));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	served_launch(served_kernel(), NULL, 3600000 * MS);
	MUST(cuEventRecord(event, NULL));
	fill_context(PLACES_OF_CONTEXT, event);
	for (unsigned i = PLACES_OF_CONTEXT; i < PLACES + more; i++)
		fill_context(1, event);
}

#define COPY_BYTES     (UINT64_C(100) * 1000 * 1000)
#define COPIES_AT_ONCE 3
#define COPIES_KNOWN   40

void served_copies_between(CUstream copies, CUstream work)
{
	CUfunction kernel = served_kernel();
	CUevent done[COPIES_AT_ONCE];
	CUdeviceptr block;
	void *host;

	MUST(cuMemAlloc_v2(&block, COPY_BYTES));
	MUST(cuMemHostAlloc(&host, COPY_BYTES, 0));
	for (unsigned i = 0; i < COPIES_AT_ONCE; i++)
		MUST(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	served_make_known(kernel, COPIES_KNOWN, MS);
	for (unsigned i = 0;; i++) {
		MUST(cuEventSynchronize(done[i % COPIES_AT_ONCE]));
		MUST(cuMemcpyHtoDAsync_v2(block, host, COPY_BYTES, copies));
		served_launch(kernel, work, MS);
		MUST(cuEventRecord(done[i % COPIES_AT_ONCE], work));
	}
}

void served_without_place(unsigned more, uint64_t kernel_ns)
{
	CUfunction kernel;
	CUstream stream;

	MUST(cuInit(0));
	served_fill_places(more);
	served_context();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		served_launch(kernel, stream, kernel_ns);
		MUST(cuStreamSynchronize(stream));
	}
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

void served_one_by_one(void (*work)(void))
{
	for (;;) {
		pid_t pid = fork();

		MUST(pid < 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work();
			_exit(0);
		}
		MUST(waitpid(pid, NULL, 0) != pid);
	}
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

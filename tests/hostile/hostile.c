/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that mean harm: what they have in common, and the judge. */
#include "tests/hostile/hostile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "gpu/abi/nvml.h"
#include "sim/machine/inject.h"
#include "sim/machine/machine.h"
#include "tests/unit/fat_binary.h"
#include "tests/unit/overlay.h"

/* What meson takes for a skipped test. */
#define SKIPPED	     77

#define DEADLINE_NS  UINT64_C(60000000000)
#define MEET_NS	     UINT64_C(5000000000)
#define LOOK_EACH_MS 2

/* Where a program that was started by its judge finds it. */
#define TELL_FD 100
#define HEAR_FD 101
#define ROLE	"HOSTILE_ROLE"

/*
 * What a driver takes of a card without showing it for a process: 3.3 MiB once and 5.5 MiB a context (H200,
 * driver 580). The simulated node counts it apart. The rest is for what the card itself takes now and then.
 */
#define CARD_PROCESS_BYTES (9 * MIB)
#define CARD_BYTES	   (32 * MIB)

#define DEVICES		   2

#define OVERLAY		   "overlay" /* below the folder */

struct judge {
	const struct hostile *program;
	const char *name;
	char folder[128];
	struct machine *machine; /* NULL: on a card */
	nvmlDevice_t devices[DEVICES];
	uint64_t idle_bytes[DEVICES];
	nvmlDeviceGetMemoryInfo_fn *read_memory;
	nvmlDeviceGetComputeRunningProcesses_fn *read_processes;
	uint64_t held_bytes; /* the most so far, of any device */
};

void hostile_must(int result, const char *call, const char *file, int line)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s:%d: process %d: %s: %d\n", file, line, (int)getpid(), call, result);
	exit(1);
}

void hostile_look(void)
{
	char answer;

	MUST(write(TELL_FD, "l", 1) != 1);
	MUST(read(HEAR_FD, &answer, 1) != 1);
}

#define GRANTED_US 200000 /* some QUOTA_CHECK_NS */

void hostile_grant(const char *devices)
{
	const char *path = getenv("VGPU_SHARE");
	char text[2048], other[1024];
	size_t length;
	FILE *file;

	if (!path)
		return;
	file = fopen(path, "r");
	MUST(!file);
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	MUST(!strstr(text, "\ndevice "));
	strstr(text, "\ndevice ")[1] = '\0';
	snprintf(other, sizeof(other), "%s.new", path);
	file = fopen(other, "w");
	MUST(!file);
	fprintf(file, "%s%send\n", text, devices);
	MUST(fclose(file));
	MUST(rename(other, path));
	usleep(GRANTED_US);
}

CUcontext hostile_begin(void)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	return context;
}

bool hostile_try_begin(void)
{
	CUcontext context;

	MUST(cuInit(0));
	return cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
	       cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

#define BUSY_NS	       UINT64_C(500000000)
#define SLOW_NS	       50000000 /* of each of slow_calls */
#define AT_ONCE_MOST   8	/* contexts that load at once */
#define FILLED_MOST    2048	/* blocks of 2 MiB, also where there is no limit */
#define WITHIN_SLOW_US 15000

/* Looks at the device's clock until the time is over; the simulated driver takes it from the parameter's name. */
static const char busy_code[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry busy(.param .u64 duration_ns)\n{\n"
	"\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n"
	"\tld.param.u64 %rd1, [duration_ns];\n\tmov.u64 %rd2, %globaltimer;\n"
	"again:\n\tmov.u64 %rd3, %globaltimer;\n\tsub.u64 %rd3, %rd3, %rd2;\n"
	"\tsetp.lt.u64 %p1, %rd3, %rd1;\n\t@%p1 bra again;\n\tret;\n}\n";

void hostile_keep_busy(CUstream stream)
{
	uint64_t duration_ns = BUSY_NS;
	void *parameters[] = {&duration_ns};
	CUfunction function;
	CUmodule module;

	MUST(cuModuleLoadData(&module, busy_code));
	MUST(cuModuleGetFunction(&function, module, "busy"));
	MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

pthread_t hostile_begin_slowly(void *(*call)(void *))
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, call, NULL));
	usleep(WITHIN_SLOW_US);
	return thread;
}

struct load_at_once {
	CUcontext context;
	const void *image;
	pthread_barrier_t *barrier;
};

static void *load_at_once(void *argument)
{
	const struct load_at_once *load = argument;
	CUmodule module;

	MUST(cuCtxSetCurrent(load->context));
	pthread_barrier_wait(load->barrier);
	cuModuleLoadData(&module, load->image);
	return NULL;
}

void hostile_load_at_once(const CUcontext *contexts, unsigned count, const void *image)
{
	struct load_at_once loads[AT_ONCE_MOST];
	pthread_t threads[AT_ONCE_MOST];
	CUdeviceptr blocks[AT_ONCE_MOST + 1], last;
	pthread_barrier_t barrier;

	MUST(count > AT_ONCE_MOST);
	for (unsigned i = 0; i <= count; i++)
		MUST(cuMemAlloc_v2(&blocks[i], 2 * MIB));
	for (unsigned i = 0; i < FILLED_MOST && cuMemAlloc_v2(&last, 2 * MIB) == CUDA_SUCCESS; i++)
		;
	for (unsigned i = 0; i <= count; i++)
		MUST(cuMemFree_v2(blocks[i]));
	MUST(pthread_barrier_init(&barrier, NULL, count));
	for (unsigned i = 0; i < count; i++) {
		loads[i] = (struct load_at_once){contexts[i], image, &barrier};
		MUST(pthread_create(&threads[i], NULL, load_at_once, &loads[i]));
	}
	for (unsigned i = 0; i < count; i++)
		MUST(pthread_join(threads[i], NULL));
}

void hostile_processes(int count, void (*run)(int index))
{
	int status, failed = 0;
	pid_t ended;

	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			run(i);
			_exit(0);
		}
		MUST(pid < 0);
	}
	for (int i = 0; i < count; i++) {
		ended = wait(&status);
		if (ended > 0 && status == 0)
			continue;
		failed = 1;
		fprintf(stderr, "process %d ended by %s %d\n", (int)ended,
			WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	MUST(failed);
}

/* Made before any process is forked: see hostile_main(). */
static _Atomic unsigned *met;

void hostile_meet(unsigned count)
{
	uint64_t deadline_ns = clock_now_ns() + MEET_NS;

	atomic_fetch_add(met, 1);
	while (atomic_load(met) < count && clock_now_ns() < deadline_ns)
		usleep(100);
}

const char *hostile_ptx(const struct hostile_code *code, char text[HOSTILE_CODE_BYTES])
{
	int length = snprintf(text, HOSTILE_CODE_BYTES,
		".version 7.0\n.target sm_70\n.address_size 64\n%s%s%s%s\n"
		".visible .entry k(.param .u64 out, .param .u64 n)\n{\n"
		"\t.local .align 8 .b8 frame[%u];\n"
		"\t.reg .b64 %%rd<9>;\n\t.reg .pred %%p<2>;\n\t.param .b64 a;\n\t.param .b64 b;\n"
		"\t.param .b32 c;\n"
		"\tld.param.u64 %%rd1, [out];\n\tld.param.u64 %%rd2, [n];\n"
		"\tsetp.eq.u64 %%p1, %%rd1, 0;\n\t@%%p1 bra done;\n"
		"\tmov.u64 %%rd3, frame;\n\tadd.u64 %%rd4, %%rd3, %%rd2;\n"
		"\tst.local.u64 [%%rd4], %%rd2;\n\txor.b64 %%rd5, %%rd2, 8;\n"
		"\tadd.u64 %%rd6, %%rd3, %%rd5;\n\tld.local.u64 %%rd7, [%%rd6];\n%s%s"
		"\tst.global.u64 [%%rd1], %%rd7;\ndone:\n\tret;\n}\n",
		code->has_heap ? ".extern .func (.param .b64 r) malloc (.param .b64 s);\n" : "",
		code->has_printf
			? ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
			: "",
		code->has_launch ? ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 "
				   "(.param .b64 b, .param .b64 s);\n"
				 : "",
		code->variables ? code->variables : "", code->frame_bytes ? code->frame_bytes : 16,
		code->has_heap ? "\tst.param.b64 [a], %rd2;\n\tcall.uni (b), malloc, (a);\n"
				 "\tld.param.b64 %rd7, [b];\n"
			       : "",
		code->has_printf ? "\tst.param.b64 [a], %rd2;\n\tst.param.b64 [b], %rd2;\n"
				   "\tcall.uni (c), vprintf, (a, b);\n"
				 : "");

	MUST(length < 0 || length >= HOSTILE_CODE_BYTES);
	return text;
}

const void *hostile_fat_binary(const struct hostile_code *code)
{
	static struct fat_binary fat;
	char text[HOSTILE_CODE_BYTES];

	fat_binary_make(&fat, hostile_ptx(code, text));
	return &fat;
}

CUresult hostile_launch(CUfunction function, CUstream stream)
{
	uint64_t out = 0, n = 0;
	void *parameters[] = {&out, &n};

	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

CUDA_KERNEL_NODE_PARAMS_v2 hostile_node(CUfunction function, CUkernel kernel)
{
	static uint64_t out, n;
	static void *parameters[] = {&out, &n};

	return (CUDA_KERNEL_NODE_PARAMS_v2){.func = function,
		.kern = kernel,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = parameters};
}

static const char *tag(bool is_in_slice)
{
	return is_in_slice ? "slice" : "free";
}

static uint64_t held_of_card(const struct judge *j, int device)
{
	nvmlProcessInfo_v1_t rows[64];
	unsigned count = 64;
	nvmlMemory_t memory;
	uint64_t unseen;

	if (j->read_memory(j->devices[device], &memory) != NVML_SUCCESS ||
		j->read_processes(j->devices[device], &count, rows) != NVML_SUCCESS)
		return 0;
	unseen = j->idle_bytes[device] + count * CARD_PROCESS_BYTES;
	return memory.used > unseen ? memory.used - unseen : 0;
}

/* Peaks of the simulated machine are its own and miss nothing. */
static uint64_t held_of_machine(const struct judge *j, int device, bool is_in_slice)
{
	struct machine_truth truth;

	MUST(machine_read_truth(j->machine, tag(is_in_slice), device, &truth));
	return j->program->is_brief ? truth.held_bytes : truth.peak_held_bytes;
}

static void look(struct judge *j, bool is_in_slice, bool is_asked)
{
	if (j->program->is_brief && !is_asked)
		return;
	for (int i = 0; i < DEVICES; i++) {
		uint64_t held = 0;

		if (j->machine)
			held = held_of_machine(j, i, is_in_slice);
		else if (j->devices[i])
			held = held_of_card(j, i);
		if (held > j->held_bytes)
			j->held_bytes = held;
	}
}

static void put(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *name, const char *format, ...)
{
	char value[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	MUST(setenv(name, value, 1));
}

static void write_share(const struct judge *j, const char *path)
{
	FILE *file = fopen(path, "w");

	MUST(!file);
	fprintf(file,
		"vgpu-share 1\nslice hostile\nregion %s%s/region\n%s\ndevice * memory %llu\n"
		"end\n",
		j->folder, j->program->is_on_overlay ? "/" OVERLAY : "",
		j->program->terms ? j->program->terms : "",
		(unsigned long long)j->program->quota_bytes);
	MUST(fclose(file));
}

static void start(const struct judge *j, bool is_in_slice, char **argv, int tell_fd, int hear_fd)
{
	const char *setting = j->program->setting, *driver = getenv("TENANT_DRIVER");
	struct rlimit no_core = {0, 0};
	char path[256];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	MUST(dup2(tell_fd, TELL_FD) < 0 || dup2(hear_fd, HEAR_FD) < 0);
	put(ROLE, "attack");
	if (driver) {
		put("LD_LIBRARY_PATH", "%s", driver);
		put("VGPU_SIM_STATE", "%s/machine", j->folder);
		put("VGPU_SIM_TAG", "%s", tag(is_in_slice));
	}
	if (is_in_slice) {
		snprintf(path, sizeof(path), "%s/share", j->folder);
		write_share(j, path);
		put("VGPU_SHARE", "%s", path);
		put("LD_PRELOAD", "%s", getenv("TENANT_LIBRARY"));
		if (setting)
			MUST(putenv(strdup(setting)));
	}
	execv("/proc/self/exe", argv);
	_exit(127);
}

/* Looks until the program ends, and when it asks for that. */
static bool watch(struct judge *j, bool is_in_slice, pid_t pid, int tell_fd, int hear_fd)
{
	uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
	struct pollfd p = {.fd = tell_fd, .events = POLLIN};
	int status = 0;
	char word;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		bool is_asked = poll(&p, 1, LOOK_EACH_MS) > 0 && read(tell_fd, &word, 1) == 1;

		look(j, is_in_slice, is_asked);
		if (is_asked)
			MUST(write(hear_fd, "l", 1) != 1);
		if (clock_now_ns() > deadline_ns) {
			kill(-pid, SIGKILL);
			fprintf(stderr, "%s takes too long\n", j->name);
		}
	}
	look(j, is_in_slice, false);
	/* What the program left behind. */
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* False where the program did not do its work. */
static bool run(struct judge *j, bool is_in_slice, char **argv, uint64_t *ret_held_bytes)
{
	int tell[2], hear[2];
	bool is_done;
	pid_t pid;

	MUST(pipe2(tell, O_CLOEXEC));
	MUST(pipe2(hear, O_CLOEXEC));
	j->held_bytes = 0;
	pid = fork();
	MUST(pid < 0);
	if (pid == 0)
		start(j, is_in_slice, argv, tell[1], hear[0]);
	setpgid(pid, pid);
	is_done = watch(j, is_in_slice, pid, tell[0], hear[1]);
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		close(hear[i]);
	}
	*ret_held_bytes = j->held_bytes;
	return is_done;
}

/* Returns how many devices there are. */
static int open_card(struct judge *j)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlInit_v2_fn *init = library ? (nvmlInit_v2_fn *)dlsym(library, "nvmlInit_v2") : NULL;
	nvmlDeviceGetHandleByIndex_v2_fn *find;
	nvmlMemory_t memory;
	int count = 0;

	if (!init || init() != NVML_SUCCESS)
		return 0;
	find = (nvmlDeviceGetHandleByIndex_v2_fn *)dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	j->read_memory = (nvmlDeviceGetMemoryInfo_fn *)dlsym(library, "nvmlDeviceGetMemoryInfo");
	j->read_processes = (nvmlDeviceGetComputeRunningProcesses_fn *)dlsym(
		library, "nvmlDeviceGetComputeRunningProcesses");
	for (unsigned i = 0; i < DEVICES && find(i, &j->devices[i]) == NVML_SUCCESS; i++) {
		MUST(j->read_memory(j->devices[i], &memory));
		j->idle_bytes[i] = memory.used;
		count++;
	}
	return count;
}

static void write_board(const struct judge *j, const char *path)
{
	FILE *file = fopen(path, "w");

	MUST(!file);
	fprintf(file, "base = h200x2\n%s\n", j->program->board);
	MUST(fclose(file));
}

static int open_machine(struct judge *j)
{
	struct inject_rule slow = {.tag = "*", .delay_ns = SLOW_NS};
	char path[256], board[256] = "h200x2", why[256] = "";

	snprintf(path, sizeof(path), "%s/machine", j->folder);
	if (j->program->board) {
		snprintf(board, sizeof(board), "%s/hostile.board", j->folder);
		write_board(j, board);
	}
	if (machine_open(path, board, &j->machine, why, sizeof(why)) != 0)
		fprintf(stderr, "no simulated machine: %s\n", why);
	for (unsigned i = 0; j->machine && i < SLOW_CALLS && j->program->slow_calls[i]; i++) {
		snprintf(slow.symbol, sizeof(slow.symbol), "%s", j->program->slow_calls[i]);
		MUST(inject_add_rule(j->machine, &slow) < 0);
	}
	return j->machine ? DEVICES : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static bool mount_overlay(const struct judge *j)
{
	const char *why = "";
	char path[256];

	snprintf(path, sizeof(path), "%s/" OVERLAY, j->folder);
	if (mkdir(path, 0755) == 0 && overlay_mount(path, &why))
		return true;
	printf("%s: skipped, %s here\n", j->name, why);
	return false;
}

static int judge(struct judge *j, char **argv)
{
	int wanted = j->program->device_count ? j->program->device_count : 1;
	uint64_t quota = j->program->quota_bytes, held, unlimited;
	uint64_t most = quota + j->program->allowance_bytes;
	bool is_done;

	if (j->program->board && !getenv("TENANT_DRIVER")) {
		printf("%s: skipped, it needs a card of its own kind\n", j->name);
		return SKIPPED;
	}
	if (j->program->is_simulated_only && !getenv("TENANT_DRIVER")) {
		printf("%s: skipped, it needs a driver that bears what it does\n", j->name);
		return SKIPPED;
	}
	if (j->program->is_slow_only && !getenv("TENANT_DRIVER")) {
		printf("%s: skipped, it needs a driver that takes its time\n", j->name);
		return SKIPPED;
	}
	if ((getenv("TENANT_DRIVER") ? open_machine(j) : open_card(j)) < wanted) {
		printf("%s: skipped, it needs %d devices\n", j->name, wanted);
		return SKIPPED;
	}
	if (j->program->is_on_overlay && !mount_overlay(j))
		return SKIPPED;
	is_done = run(j, false, argv, &unlimited) && run(j, true, argv, &held);
	if (!is_done) {
		printf("%s: the program could not do its work\n", j->name);
		return 1;
	}
	printf("%s: quota %llu MiB, held at most %llu MiB (%llu without the library)\n", j->name,
		(unsigned long long)(quota / MIB), (unsigned long long)(held / MIB),
		(unsigned long long)(unlimited / MIB));
	if (!j->machine)
		most += CARD_BYTES;
	if (unlimited <= most)
		printf("%s: this is no way above the quota%s\n", j->name,
			j->machine ? "" : " on this card");
	if (!j->machine && unlimited <= most && held <= most)
		return SKIPPED;
	return held > most || unlimited <= most;
}

int hostile_main(char **argv, const struct hostile *program)
{
	struct judge j = {.program = program, .name = strrchr(argv[0], '/')};
	const char *tmp = getenv("TMPDIR");
	int status;

	j.name = j.name ? j.name + 1 : argv[0];
	if (strncmp(j.name, "hostile-", 8) == 0)
		j.name += 8;
	met = mmap(NULL, sizeof(*met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(met == MAP_FAILED);
	if (getenv(ROLE)) {
		program->attack();
		return 0;
	}
	MUST(!getenv("TENANT_LIBRARY"));
	signal(SIGPIPE, SIG_IGN);
	/* What processes of the program leave behind is waited for here. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(j.folder, sizeof(j.folder), "%s/hostile-XXXXXX", tmp ? tmp : "/tmp");
	MUST(!mkdtemp(j.folder));
	status = judge(&j, argv);
	machine_close(j.machine);
	overlay_unmount(j.folder, OVERLAY);
	nftw(j.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}

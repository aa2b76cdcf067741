/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, slices and tenants of a test.
 *
 * Every tenant dies with the test (PR_SET_PDEATHSIG) and every wait has a deadline, so that a
 * library that hangs fails a test instead of stopping it.
 */
#include "tests/tenant/tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "region/snapshot.h"
#include "tests/tenant/stuck.h"

#define DEADLINE_NS UINT64_C(20000000000)
#define ENV_MOST    32

static const char *needed(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		print_message("%s is not set; run me with meson test\n", name);
		abort();
	}
	return value;
}

int node_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct node *node = calloc(1, sizeof(*node));
	char why[256] = "";
	uint8_t uuid[16];

	if (!node)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	snprintf(node->dir, sizeof(node->dir), "%s/tenant-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(node->dir))
		return -1;
	chmod(node->dir, 0755);
	snprintf(node->state, sizeof(node->state), "%s/machine", node->dir);
	snprintf(node->errors, sizeof(node->errors), "%s/stderr", node->dir);
	if (machine_open(node->state, "h200x2", &node->machine, why, sizeof(why)) != 0) {
		print_message("no simulated machine: %s\n", why);
		return -1;
	}
	for (int i = 0; i < NODE_DEVICES; i++) {
		board_uuid(machine_board(node->machine), i, uuid);
		machine_uuid_text(uuid, node->uuid[i]);
	}
	*state = node;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static bool has_kept_quotas(const struct node *node)
{
	bool is_good = true;

	for (unsigned i = 0; i < node->slice_count; i++)
		for (int d = 0; d < NODE_DEVICES; d++) {
			const struct slice *s = &node->slices[i];
			uint64_t peak = slice_peak(s, d);

			if (s->quota[d] == UINT64_MAX || peak <= s->quota[d] + s->slack_bytes)
				continue;
			print_message("slice %s held %llu of device %d, quota %llu\n", s->name,
				(unsigned long long)peak, d, (unsigned long long)s->quota[d]);
			is_good = false;
		}
	return is_good;
}

int node_teardown(void **state)
{
	struct node *node = *state;
	char errors[4096];
	bool is_good;

	if (!node)
		return 0;
	for (unsigned i = 0; i < node->tenant_count; i++)
		if (node->tenants[i].is_running)
			tenant_kill(&node->tenants[i], SIGKILL);
	is_good = has_kept_quotas(node);
	node_read_errors(node, errors, sizeof(errors));
	if (errors[0] && !node->is_loud) {
		print_message("unexpected on stderr: %s\n", errors);
		is_good = false;
	}
	machine_close(node->machine);
	nftw(node->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(node);
	return is_good ? 0 : -1;
}

struct environment {
	char *strings[ENV_MOST + 1];
	unsigned count;
};

static void env_add(struct environment *env, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void env_add(struct environment *env, const char *format, ...)
{
	va_list args;

	if (env->count == ENV_MOST)
		abort();
	va_start(args, format);
	if (vasprintf(&env->strings[env->count++], format, args) < 0)
		abort();
	va_end(args);
}

static void env_free(struct environment *env)
{
	while (env->count > 0)
		free(env->strings[--env->count]);
}

static void env_add_preload(struct environment *env, const struct node *node)
{
	const char *library = node->is_without_library ? "" : needed("TENANT_LIBRARY");
	const char *const parts[] = {getenv("TEST_CLOCK_LIBRARY"),
		*library ? node->preload_first : NULL, library,
		*library ? node->preload_last : NULL};
	char list[2048] = "";
	size_t used = 0;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i] && *parts[i])
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
				used ? ":" : "", parts[i]);
	if (used)
		env_add(env, "LD_PRELOAD=%s", list);
	if (getenv("TEST_CLOCK"))
		env_add(env, "TEST_CLOCK=%s", getenv("TEST_CLOCK"));
}

/* What every tenant has; what was added before comes first and so is what getenv() finds. */
static void env_complete(
	struct environment *env, const struct node *node, const struct slice *slice)
{
	const char *driver = needed("TENANT_DRIVER"), *tmp = getenv("TMPDIR");

	env_add_preload(env, node);
	env_add(env, "LD_LIBRARY_PATH=%s%s%s", node->driver ? node->driver : "",
		node->driver ? ":" : "", driver);
	env_add(env, "PATH=/usr/bin:/bin");
	env_add(env, "TMPDIR=%s", tmp ? tmp : "/tmp");
	env_add(env, "VGPU_SIM_STATE=%s", node->state);
	env_add(env, "VGPU_SIM_BOARD=h200x2");
	env_add(env, "VGPU_SIM_TAG=%s", slice ? slice->name : "nobody");
	if (getenv("HUNT_TRACE"))
		env_add(env, "HUNT_TRACE=%s", getenv("HUNT_TRACE"));
	if (slice && slice->share[0])
		env_add(env, "VGPU_SHARE=%s", slice->share);
	env->strings[env->count] = NULL;
}

/* PIDs of its own, with a /proc that shows them; what it execs is process 1 there. */
static void enter_namespace(void)
{
	int status;
	pid_t inner;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		_exit(77);
	inner = fork();
	if (inner < 0)
		_exit(77);
	if (inner > 0) {
		/* the pipes are the inner one's alone: their end must tell of its end */
		close(0);
		close(1);
		waitpid(inner, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
}

/* An /etc of its own with nothing but that share file in it. */
static void enter_system_share(const char *text)
{
	FILE *file;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", "/etc", "tmpfs", 0, NULL) < 0 || mkdir("/etc/vgpu", 0755) < 0)
		_exit(77);
	file = fopen("/etc/vgpu/share", "w");
	if (!file || fputs(text, file) < 0 || fclose(file))
		_exit(77);
}

bool node_can_have_system_share(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		enter_system_share("");
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static pid_t spawn(struct node *node, char *const *argv, char *const *env, int in_fd, int out_fd)
{
	struct rlimit no_core = {0, 0};
	struct rlimit files = {node->file_most_bytes, node->file_most_bytes};
	int errors_fd;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (node->file_most_bytes)
		setrlimit(RLIMIT_FSIZE, &files);
	errors_fd = open(node->errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	dup2(in_fd, 0);
	dup2(out_fd, 1);
	dup2(errors_fd, 2);
	if (node->system_share)
		enter_system_share(node->system_share);
	if (node->enter)
		node->enter();
	if (node->is_in_namespace)
		enter_namespace();
	signal(SIGPIPE, SIG_DFL);
	execve(argv[0], argv, env);
	_exit(127);
}

const char *node_program(const char *name)
{
	static char path[512];
	char folders[1024], *rest = NULL;

	snprintf(folders, sizeof(folders), "%s", needed("TENANT_PROGRAMS"));
	for (char *f = strtok_r(folders, ":", &rest); f; f = strtok_r(NULL, ":", &rest)) {
		snprintf(path, sizeof(path), "%s/%s", f, name);
		if (access(path, F_OK) == 0)
			return path;
	}
	print_message("no program %s in %s\n", name, needed("TENANT_PROGRAMS"));
	abort();
}

struct tenant *tenant_start(struct node *node, struct slice *slice, const char *door, ...)
{
	struct tenant *t = &node->tenants[node->tenant_count++];
	bool is_found = strncmp(door, "found-", 6) == 0;
	char *argv[3] = {NULL, NULL, NULL};
	struct environment env = {.count = 0};
	int to[2], from[2];
	va_list args;

	assert_true(node->tenant_count <= NODE_TENANTS);
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	va_start(args, door);
	for (const char *more = va_arg(args, const char *); more; more = va_arg(args, const char *))
		env_add(&env, "%s", more);
	va_end(args);
	env_complete(&env, node, slice);
	argv[0] = strdup(node_program(is_found ? "client-found" : "client"));
	argv[1] = strdup(is_found ? door + 6 : door);
	*t = (struct tenant){.node = node, .slice = slice, .to_fd = to[1], .from_fd = from[0]};
	t->pid = spawn(node, argv, env.strings, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	free(argv[0]);
	free(argv[1]);
	env_free(&env);
	assert_true(t->pid > 0);
	t->is_running = true;
	return t;
}

struct tenant *tenant_new(struct slice *slice)
{
	struct tenant *t = tenant_start(slice->node, slice, "linked", NULL);

	expect(t, OK, "primary 0");
	return t;
}

static void tell(struct tenant *t, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void tell(struct tenant *t, const char *format, va_list args)
{
	char line[512];
	int length = vsnprintf(line, sizeof(line) - 1, format, args);

	line[length++] = '\n';
	if (write(t->to_fd, line, (size_t)length) != length)
		print_message("tenant %d does not listen: %s", t->pid, line);
}

void tenant_tell(struct tenant *tenant, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(tenant, format, args);
	va_end(args);
}

/* One line, or what there is when the deadline passes or the pipe ends. */
static size_t read_line(struct tenant *t, char *line, size_t size)
{
	uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
	size_t used = 0;

	while (used + 1 < size) {
		struct pollfd p = {.fd = t->from_fd, .events = POLLIN};
		uint64_t now_ns = clock_now_ns();

		if (now_ns >= deadline_ns) {
			print_message("tenant %d does not answer\n", t->pid);
			stuck_print(t->pid);
			break;
		}
		if (poll(&p, 1, (int)((deadline_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		if (read(t->from_fd, line + used, 1) != 1)
			break;
		if (line[used] == '\n')
			break;
		used++;
	}
	line[used] = '\0';
	return used;
}

int tenant_answer(struct tenant *tenant)
{
	char line[ANSWER_BYTES], *end;
	long result;

	if (read_line(tenant, line, sizeof(line)) == 0) {
		snprintf(tenant->answer, sizeof(tenant->answer), " no answer");
		return -1;
	}
	result = strtol(line, &end, 10);
	snprintf(tenant->answer, sizeof(tenant->answer), "%s", end);
	return end == line ? -2 : (int)result;
}

int tenant_ask(struct tenant *tenant, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(tenant, format, args);
	va_end(args);
	return tenant_answer(tenant);
}

uint64_t tenant_number(const struct tenant *tenant, const char *key)
{
	char pattern[64];
	const char *at;

	snprintf(pattern, sizeof(pattern), " %s=", key);
	at = strstr(tenant->answer, pattern);
	if (!at)
		print_message("no %s in '%s'\n", key, tenant->answer);
	assert_non_null(at);
	return strtoull(at + strlen(pattern), NULL, 10);
}

static int collect(struct tenant *t)
{
	char rest[256];
	int status = -1;

	/* The end of the pipe is the end of whoever held it, in whatever namespace it is. */
	while (read_line(t, rest, sizeof(rest)) > 0)
		;
	close(t->from_fd);
	while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
		;
	t->is_running = false;
	return status;
}

bool tenant_stops(const struct tenant *tenant)
{
	uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
	siginfo_t seen = {.si_pid = 0};

	/* What became of it is left for the one who collects it. */
	while (waitid(P_PID, (id_t)tenant->pid, &seen, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) ==
			0 &&
		seen.si_pid == 0 && clock_now_ns() < deadline_ns)
		usleep(500);
	return seen.si_pid != 0 && seen.si_code == CLD_STOPPED;
}

void tenant_hang_up(struct tenant *tenant)
{
	if (tenant->to_fd >= 0)
		close(tenant->to_fd);
	tenant->to_fd = -1;
}

int tenant_end(struct tenant *tenant)
{
	tenant_hang_up(tenant);
	return collect(tenant);
}

int tenant_kill(struct tenant *tenant, int signal)
{
	kill(tenant->pid, signal);
	if (signal == SIGSTOP || signal == SIGCONT)
		return 0;
	tenant_hang_up(tenant);
	return collect(tenant);
}

int node_run(
	struct node *node, struct slice *slice, char *const *argv, char *ret_output, size_t size)
{
	struct environment env = {.count = 0};
	int from[2], status = -1;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	env_complete(&env, node, slice);
	pid = spawn(node, argv, env.strings, 0, from[1]);
	close(from[1]);
	env_free(&env);
	assert_true(pid > 0);
	while (used + 1 < size && (n = read(from[0], ret_output + used, size - 1 - used)) > 0)
		used += (size_t)n;
	ret_output[used] = '\0';
	close(from[0]);
	waitpid(pid, &status, 0);
	return status;
}

void node_read_errors(const struct node *node, char *ret_text, size_t size)
{
	_cleanup_file_ FILE *file = fopen(node->errors, "r");
	size_t used = file ? fread(ret_text, 1, size - 1, file) : 0;

	ret_text[used] = '\0';
}

const char *node_file(struct node *node, const char *name, const char *content, size_t length)
{
	static char path[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", node->dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(content, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	return path;
}

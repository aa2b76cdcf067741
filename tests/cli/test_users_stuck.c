/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu beside a user whose process never comes out of exec (tests/cli/users.h): the kernel closes a file of a file system of hers, which does not
 * answer. Whoever reads the process's stat, maps, environment or namespaces waits. Or out of mmap(), as it writes a page to such a file: whoever reads its
 * maps or environment waits. On the whole machine: for seconds only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "region/slot.h"
#include "tests/cli/tool.h"
#include "tests/cli/users.h"

#define LONGEST_S 8 /* a process stands still */
#define FOLDER	  "/tmp/x/f"

struct stuck {
	pid_t server, victim;
};

static void put(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(77);
}

/* Hers, with a file system of hers. */
static int mount_own(uid_t user)
{
	char text[128];
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(77);
	put("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", user, user);
	put("/proc/self/uid_map", text);
	put("/proc/self/gid_map", text);
	fd = open("/tmp/x/fuse", O_RDWR | O_CLOEXEC);
	snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd, user, user);
	if (fd < 0 || mount("none", FOLDER, "fuse", MS_NOSUID | MS_NODEV, text) < 0)
		_exit(77);
	return fd;
}

static void answer(int fd, uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size), .error = error, .unique = unique};
	char text[8192];

	memcpy(text, &head, sizeof(head));
	if (size)
		memcpy(text + sizeof(head), data, size);
	if (write(fd, text, head.len) < 0)
		_exit(1);
}

/* Where it is to stand still: the call of the victim's, and what of it is never answered. */
struct place {
	const char *call;
	uint32_t never;
};
static const struct place in_exec = {"exec", FUSE_FLUSH}, in_mmap = {"mmap", FUSE_WRITE};
static const struct place *place = &in_exec;

static void answer_read(int fd, const struct fuse_in_header *asked)
{
	static const char zeroes[4096];
	const struct fuse_read_in *r = (const void *)(asked + 1);

	answer(fd, asked->unique, 0, zeroes, r->offset ? 0 : min_u64(r->size, sizeof(zeroes)));
}

/* Of a folder with one file by any name. One question it never answers, and tells then who waits. */
static void answer_one(int fd, const struct fuse_in_header *asked, int tell_fd, pid_t victim)
{
	struct fuse_init_out start = {.major = 7, .minor = 31, .max_write = 65536};
	struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 99, .attr_valid = 99};
	struct fuse_attr_out attr = {.attr_valid = 99};
	struct fuse_open_out file = {.fh = 1};
	static unsigned opened;

	attr.attr.ino = asked->nodeid;
	attr.attr.mode = (asked->nodeid == 1 ? S_IFDIR : S_IFREG) | 0777;
	entry.attr.ino = 2;
	entry.attr.mode = S_IFREG | 0666;
	entry.attr.uid = attr.attr.uid = ALICE;
	entry.attr.gid = attr.attr.gid = ALICE;
	entry.attr.nlink = attr.attr.nlink = 1;
	entry.attr.size = 4096;
	attr.attr.size = asked->nodeid == 1 ? 0 : 4096;
	/* mmap() of a file with this flag drops what others have of it in memory, and writes that first. */
	if (asked->opcode == FUSE_OPEN && place == &in_mmap && opened++ == 0)
		file.open_flags = FOPEN_DIRECT_IO;
	if (asked->opcode == FUSE_INIT)
		answer(fd, asked->unique, 0, &start, sizeof(start));
	else if (asked->opcode == FUSE_LOOKUP)
		answer(fd, asked->unique, 0, &entry, sizeof(entry));
	else if (asked->opcode == FUSE_GETATTR)
		answer(fd, asked->unique, 0, &attr, sizeof(attr));
	else if (asked->opcode == FUSE_OPEN)
		answer(fd, asked->unique, 0, &file, sizeof(file));
	else if (asked->opcode == FUSE_READ)
		answer_read(fd, asked);
	else if (asked->opcode == place->never)
		(void)!write(tell_fd, &(pid_t){victim}, sizeof(pid_t));
	else if (asked->opcode != FUSE_FORGET)
		answer(fd, asked->unique, -ENOSYS, NULL, 0);
}

static void __attribute__((noreturn)) be_victim(int server_fd)
{
	int first, second;
	char *page;

	/* Who has it open keeps the file system alive, and could not be ended while it waits for that. */
	close(server_fd);
	alarm(LONGEST_S);
	first = open(FOLDER "/x", O_RDWR | O_CLOEXEC);
	if (first < 0)
		_exit(77);
	if (place == &in_exec) {
		execl("/bin/sleep", "stuck", "600", NULL);
		_exit(77);
	}
	second = open(FOLDER "/x", O_RDWR | O_CLOEXEC);
	page = second < 0 ? MAP_FAILED
			  : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, second, 0);
	if (page == MAP_FAILED)
		_exit(77);
	*page = 1;
	mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, first, 0);
	_exit(77);
}

static void __attribute__((noreturn)) serve(uid_t user, int tell_fd)
{
	static char text[1 << 20];
	pid_t victim;
	int fd;

	alarm(LONGEST_S);
	if (setgid(user) < 0 || setuid(user) < 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	fd = mount_own(user);
	victim = fork();
	if (victim == 0)
		be_victim(fd);
	while (read(fd, text, sizeof(text)) > 0)
		answer_one(fd, (const struct fuse_in_header *)(void *)text, tell_fd, victim);
	_exit(1);
}

/* False where the machine does not let her. */
static bool stick(uid_t user, struct stuck *ret_stuck)
{
	struct pollfd told = {.events = POLLIN};
	int tell[2];

	tool_run("rm -rf /tmp/x; mkdir -p " FOLDER "; mknod -m 666 /tmp/x/fuse c 10 229");
	assert_int_equal(chown(FOLDER, user, user), 0);
	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	*ret_stuck = (struct stuck){.server = fork()};
	if (ret_stuck->server == 0)
		serve(user, tell[1]);
	close(tell[1]);
	told.fd = tell[0];
	assert_int_equal(poll(&told, 1, LONGEST_S * 1000), 1);
	if (read(tell[0], &ret_stuck->victim, sizeof(pid_t)) != sizeof(pid_t))
		ret_stuck->victim = 0;
	close(tell[0]);
	if (!ret_stuck->victim)
		waitpid(ret_stuck->server, NULL, 0);
	return ret_stuck->victim;
}

static void unstick(const struct stuck *stuck)
{
	kill(stuck->server, SIGKILL);
	waitpid(stuck->server, NULL, 0);
	kill(stuck->victim, SIGKILL);
}

/* The command with a process of Alice's that stands still: what it says, and 137 where it waits for that one. */
static const struct said *run_beside(const char *command)
{
	const struct said *said;
	struct stuck stuck;

	if (!stick(ALICE, &stuck))
		skip();
	said = tool_run(AS "victim=%d; cd /; %s", (int)stuck.victim, command);
	unstick(&stuck);
	return said;
}

#define SHORTLY "timeout -s KILL 3 "

static void nobody_else_waits_for_it(void **state)
{
	static const char *const commands[] = {"list", "list --all --processes", "top --once",
		"set web --memory 2g", "suspend web", "resume web", "run --memory 1g -- true",
		"doctor"};
	char command[200];

	tool_run(AS "slice $B web");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(command, sizeof(command), "as $B " SHORTLY "\"$VGPU\" %s", commands[i]);
		assert_in_range(run_beside(command)->status, 0, 1);
	}
}

/* Nobody sees then whether it is the one that the region means. */
static void it_has_not_ended_for_who_evicts_or_resumes(void **state)
{
	static const char unknown[] = "cannot be looked at: Permission denied; whether it has "
				      "ended is not known";
	struct region region = REGION_NULL;
	const struct said *said;
	struct region_slot *own;
	unsigned slot, device;
	struct stuck stuck;

	tool_run(AS "slice $A web");
	assert_int_equal(region_open("/tmp/vgpu-54321/web/region", &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(
		region_device(&region, "GPU-00000000-1111-2222-3333-444444444444", &device), 0);
	if (!stick(ALICE, &stuck))
		skip();
	own = &region.file->own.slots[slot];
	own->pid = (uint32_t)stuck.victim;
	own->held[device] = UINT64_C(100) << 32;
	said = tool_run(SHORTLY "\"$VGPU\" suspend 54321/web --evict");
	assert_int_equal(said->status, 1);
	assert_says(said->err, unknown);
	own->evicted_bytes[device] = UINT64_C(100) << 20;
	said = tool_run(SHORTLY "\"$VGPU\" resume 54321/web");
	unstick(&stuck);
	region_close(&region);
	assert_int_equal(said->status, 1);
	assert_says(said->err, unknown);
}

/* A slice that runs is changed by its folder alone. */
static void root_changes_a_slice_beside_it(void **state)
{
	static const char *const commands[] = {"set 54322/web --memory 2g", "suspend 54322/web",
		"resume 54322/web", "set own --memory 2g"};
	char command[500];

	tool_run(AS "slice $B web");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(command, sizeof(command),
			"\"$VGPU\" run --memory 1g --name own -- sleep 5 & by 'test -e "
			"/run/vgpu/own/region'; " SHORTLY "\"$VGPU\" %s; r=$?; kill %%1; exit $r",
			commands[i]);
		assert_int_equal(run_beside(command)->status, 0);
	}
}

static void the_end_of_roots_slice_waits_for_no_user(void **state)
{
	assert_int_equal(run_beside(SHORTLY "\"$VGPU\" run --memory 1g -- true")->status, 0);
}

/* It is looked for in /proc by a process that can be ended. */
static void roots_commands_end_beside(const struct place *beside)
{
	static const char *const commands[] = {"list", "list --processes", "top --once", "doctor"};
	char command[200];

	place = beside;
	tool_run(AS "slice $B web");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const struct said *said;

		snprintf(command, sizeof(command), SHORTLY "\"$VGPU\" %s; echo status $?",
			commands[i]);
		said = run_beside(command);
		assert_null(strstr(said->out, "status 137"));
		assert_says(said->err,
			"/proc does not answer, as of one that stands still in exec or mmap: "
			"it was not looked at");
	}
	place = &in_exec;
	assert_says(tool_run("\"$VGPU\" list --all")->out, "54322/web");
}

static void root_waits_shortly_and_says_so(void **state)
{
	roots_commands_end_beside(&in_exec);
}

static void so_it_does_where_the_lock_of_the_memory_is_held(void **state)
{
	roots_commands_end_beside(&in_mmap);
}

static void a_process_that_is_named_and_stuck_is_told(void **state)
{
	const struct said *said = run_beside(SHORTLY "\"$VGPU\" doctor $victim");

	assert_int_equal(said->status, 1);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nobody_else_waits_for_it, users_clear),
		cmocka_unit_test_setup(it_has_not_ended_for_who_evicts_or_resumes, users_clear),
		cmocka_unit_test_setup(root_changes_a_slice_beside_it, users_clear),
		cmocka_unit_test_setup(root_waits_shortly_and_says_so, users_clear),
		cmocka_unit_test_setup(
			so_it_does_where_the_lock_of_the_memory_is_held, users_clear),
		cmocka_unit_test_setup(a_process_that_is_named_and_stuck_is_told, users_clear),
		cmocka_unit_test_setup(the_end_of_roots_slice_waits_for_no_user, users_clear),
	};

	return cmocka_run_group_tests_name("cli users stuck", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

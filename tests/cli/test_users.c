/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu as root beside users who mean harm: what they make is not believed, not followed, not opened.
 *
 * Runs as root, with /run, /tmp and /dev/shm of its own. Two users, by numbers that no machine has.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "region/process.h"
#include "region/slot.h"
#include "tests/cli/tool.h"

#define ALICE 54321
#define BOB   54322

/* Functions of the shell: a user's command, and a slice of hers. */
#define AS                                                                                        \
	"as() { who=$1; shift; setpriv --reuid \"$who\" --regid \"$who\" --clear-groups -- "      \
	"\"$@\"; }\n"                                                                             \
	"slice() { as \"$1\" sh -c 'umask 077; mkdir -p \"/tmp/vgpu-$1/$2\" && "                  \
	"cd \"/tmp/vgpu-$1/$2\" && : >lock && printf \"vgpu-share 1\\nslice $2\\n"                \
	"region $PWD/region\\ndevice * memory 1073741824\\nend\\n\" >share' - \"$1\" \"$2\"; }\n" \
	"runs() { until grep -qx \"$2\" /proc/$1/comm; do sleep 0.01; done; }\n"                  \
	"A=54321 B=54322\n"

/* The folder of the build, from the path of the program under test. */
static bool find_build(char ret_path[PATH_MAX])
{
	const char *vgpu = getenv("VGPU");
	char *end;

	if (!vgpu || !realpath(vgpu, ret_path))
		return false;
	end = strstr(ret_path, "/src/cli/vgpu");
	if (end)
		*end = '\0';
	return end;
}

/* Shows it again where the new /tmp hides it. */
static int show_build(const char *path, int fd)
{
	char command[PATH_MAX + 16], from[32];

	if (access(path, F_OK) == 0)
		return 0;
	snprintf(command, sizeof(command), "mkdir -p '%s'", path);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	return system(command) == 0 ? mount(from, path, NULL, MS_BIND, NULL) : -1;
}

static int set_up(void **state)
{
	static const char *const places[] = {"/run", "/tmp", "/dev/shm"};
	_cleanup_fd_ int build = -1;
	char path[PATH_MAX];

	if (!find_build(path))
		return -1;
	build = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (build < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (mount("none", places[i], "tmpfs", 0, "mode=1777") < 0)
			return -1;
	if (show_build(path, build) != 0)
		return -1;
	if (tool_set_up(state) != 0)
		return -1;
	unsetenv("VGPU_STATE");
	unsetenv("XDG_RUNTIME_DIR");
	return chmod(tool_path("."), 0755);
}

static int clear(void **state)
{
	tool_run("rm -rf /tmp/vgpu-[0-9x]* /run/vgpu /run/user");
	return 0;
}

static void a_slice_is_called_by_its_user_where_several_have_the_name(void **state)
{
	const struct said *said =
		tool_run(AS "slice $A web; slice $B web; \"$VGPU\" set web --memory 2g");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "54321/web");
	assert_says(said->err, "54322/web");
	said = tool_run(
		AS "\"$VGPU\" set $B/web --memory 2g; grep -h device /tmp/vgpu-$A/web/share "
		   "/tmp/vgpu-$B/web/share");
	assert_says(said->out, "device * memory 1073741824\ndevice * memory 2147483648\n");
	said = tool_run("\"$VGPU\" list --all | tr -s ' '");
	assert_says(said->out, "\n54321/web any 0 0 1G");
	assert_says(said->out, "\n54322/web any 0 0 2G");
	/* Root's own is meant by its name alone, whoever else has one. */
	said = tool_run(
		"\"$VGPU\" run --memory 1g --name web -- sh -c '\"$VGPU\" set web --memory 3g; "
		"grep -h device /run/vgpu/web/share'");
	assert_says(said->out, " memory 3221225472\n");
	assert_int_equal(said->status, 0);
	said = tool_run("\"$VGPU\" doctor 54322/web");
	assert_says(said->out, "slice 54322/web");
	assert_int_equal(tool_run("\"$VGPU\" set 54323/web --memory 3g")->status, 1);
}

/* Each took as long as it takes to look at all processes, and longer beside one without an environment. */
static void a_user_with_many_folders_keeps_root_waiting_no_longer(void **state)
{
	uint64_t before_ns = clock_now_ns();
	const struct said *said;

	tool_run(AS
		"slice $A s1; slice $B web\n"
		"as $A sh -c 'cd /tmp/vgpu-54321; for i in $(seq 2 300); do cp -r s1 s$i; done'\n"
		"as $A env -i \"$(command -v sleep)\" 60 </dev/null >/dev/null 2>&1 & echo $! "
		">/tmp/sleeper");
	before_ns = clock_now_ns();
	said = tool_run("\"$VGPU\" list --all | grep -c '^54321/s'; \"$VGPU\" list --all | grep -c "
			"'^54322/web'");
	assert_in_range(clock_now_ns() - before_ns, 0, UINT64_C(4000000000));
	assert_string_equal(said->out, "256\n1\n");
	assert_says(said->err, "vgpu: user 54321 has more than 256 folders and regions where "
			       "slices are: 44 were not looked at\n");
	tool_run("kill $(cat /tmp/sleeper); rm /tmp/sleeper");
	/* A slice that is named is found wherever it stands. */
	said = tool_run("for i in 1 150 299 300; do \"$VGPU\" set 54321/s$i --memory 2g >/dev/null "
			"|| echo s$i; done");
	assert_string_equal(said->out, "");
}

static void folders_that_lie_about_their_user_are_not_seen(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; slice $B other\n"
		   "as $B sh -c 'cp -r /tmp/vgpu-54322 /tmp/vgpu-x; mv /tmp/vgpu-x/other "
		   "/tmp/vgpu-x/web; "
		   "cp -r /tmp/vgpu-x /tmp/vgpu-54399; ln -s /tmp/vgpu-54322 /tmp/vgpu-54322x; "
		   "cp -r /tmp/vgpu-x /tmp/vgpu-054322; ln -s /tmp/vgpu-54321/web "
		   "/tmp/vgpu-54322/link'\n"
		   "\"$VGPU\" list --all | grep -o '^543[^ ]*' | sort; \"$VGPU\" set web --cores "
		   "10 >/dev/null");

	assert_string_equal(said->out, "54321/web\n54322/other\n");
	assert_string_equal(said->err, "");
	assert_int_equal(said->status, 0);
	said = tool_run(
		"chmod 0777 /tmp/vgpu-54322; \"$VGPU\" list --all | grep -o '^543[^ ]*' | sort");
	assert_string_equal(said->out, "54321/web\n");
}

/* A writer waits at each FIFO until a reader opens it: after root has looked, all wait still. */
static void nothing_but_regular_files_is_opened(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A one; slice $A two; slice $A three; slice $A four; cd /tmp/vgpu-$A\n"
		   "mkfifo pipe; rm one/share; mkfifo one/share; rm two/lock; mkfifo two/lock; "
		   "mkfifo three/region; ln -s ../pipe four/region\n"
		   "chown -hR $A *; touched=; for f in pipe one/share two/lock three/region; do "
		   "( echo >$f; echo $f >>\"$HERE/touched\" ) & pids=\"$pids $!\"; done\n"
		   "\"$VGPU\" list --all >/dev/null; \"$VGPU\" list --all --json >/dev/null; "
		   "\"$VGPU\" doctor >/dev/null; "
		   "for s in one two three four; do timeout 10 \"$VGPU\" set $A/$s --cores 10; "
		   "timeout 10 \"$VGPU\" suspend $A/$s --evict; done\n"
		   "kill $pids; cat \"$HERE/touched\"; ls -l /dev/pts >/dev/null");

	assert_null(strstr(said->out, "pipe"));
	assert_null(strstr(said->out, "one/share"));
	assert_null(strstr(said->out, "two/lock"));
	assert_null(strstr(said->out, "three/region"));
	assert_says(said->err, "two': open its lock: it is no regular file");
}

/* Another process, of that user; ends with this one. */
static pid_t start_victim(uid_t user)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (setgid(user) < 0 || setuid(user) < 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user takes it away */
	prctl(PR_SET_DUMPABLE, 1);
	for (;;)
		pause();
}

/* By a number, and as many ticks later as it says than that process began. */
static void evict_names(pid_t victim, uint64_t later, int status, const char *expected)
{
	const struct said *said;
	struct process_identity id;
	struct region region;
	unsigned slot, device;

	tool_run(AS "slice $A web");
	assert_int_equal(region_open("/tmp/vgpu-54321/web/region", &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(
		region_device(&region, "GPU-00000000-1111-2222-3333-444444444444", &device), 0);
	assert_int_equal(process_identify(victim, &id), 0);
	region.file->own.slots[slot].pid = (uint32_t)victim;
	region.file->own.slots[slot].start_time = id.start_time + later;
	region.file->own.slots[slot].held[device] = UINT64_C(100) << 32;
	said = tool_run("timeout 20 \"$VGPU\" suspend 54321/web --evict");
	assert_int_equal(said->status, status);
	assert_says(said->err, expected);
	region.file->own.slots[slot].evicted_bytes[device] = UINT64_C(100) << 20;
	said = tool_run("timeout 20 \"$VGPU\" resume 54321/web");
	assert_int_equal(said->status, status);
	assert_says(said->err, expected);
	region_close(&region);
	assert_int_equal(kill(victim, SIGKILL), 0);
	assert_int_equal(waitpid(victim, NULL, 0), victim);
}

static void a_process_that_only_the_region_names_is_not_evicted(void **state)
{
	evict_names(start_victim(BOB), 0, 1, "which is not of the slice's user (54321)");
	evict_names(start_victim(0), 0, 1, "which is not of the slice's user (54321)");
	evict_names(start_victim(ALICE), 0, 1, "which has not mapped that file");
	/* No process of that number began then. The driver, which knows of numbers alone, is not even asked for. */
	evict_names(start_victim(BOB), 1, 0, "");
	evict_names(start_victim(0), (uint64_t)-1, 0, "");
}

/* Its environment is, by its own word, some TiB that nobody has touched. */
static int claim_memory(size_t bytes)
{
	char *base =
		mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct prctl_mm_map map = {.exe_fd = (__u32)-1};
	__u64 fields[52] = {0};
	char text[4096] = "";
	const char *at;
	FILE *file = fopen("/proc/self/stat", "re");

	if (!file || !fgets(text, sizeof(text), file) || base == MAP_FAILED)
		return -1;
	fclose(file);
	at = strrchr(text, ')') + 2;
	for (size_t i = 3; at && i < ARRAY_SIZE(fields); i++, at = at ? at + 1 : NULL) {
		fields[i] = strtoull(at, NULL, 10);
		at = strchr(at, ' ');
	}
	/* numbers of proc(5) */
	map.start_code = fields[26];
	map.end_code = fields[27];
	map.start_stack = fields[28];
	map.start_data = fields[45];
	map.end_data = fields[46];
	map.start_brk = map.brk = fields[47];
	map.arg_start = fields[48];
	map.arg_end = fields[49];
	map.env_start = (uintptr_t)base;
	map.env_end = (uintptr_t)base + bytes;
	return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
}

static void an_environment_without_an_end_holds_up_nobody(void **state)
{
	int tell[2], outcome = -1;
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setgid(ALICE) == 0 && setuid(ALICE) == 0)
			outcome = claim_memory((size_t)1 << 44);
		prctl(PR_SET_DUMPABLE, 1);
		if (write(tell[1], &outcome, sizeof(outcome)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(tell[0], &outcome, sizeof(outcome)), sizeof(outcome));
	if (outcome == 0)
		outcome = tool_run("timeout -s KILL 10 \"$VGPU\" run --memory 1g -- true && "
				   "! timeout 10 \"$VGPU\" doctor %d && "
				   "grep -q 'nothing tells' \"$HERE/out\"",
			(int)pid)
				  ->status;
	else
		print_message("skipped: this kernel does not let a process say so\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(tell[0]);
	close(tell[1]);
	assert_in_range(outcome + 1, 0, 1);
}

static void a_strangers_environment_keeps_no_slice_of_roots(void **state)
{
	const struct said *said =
		tool_run(AS "setpriv --reuid $A --regid $A --clear-groups -- env "
			    "VGPU_SHARE=/run/vgpu/web/share sleep 60 & runs $! sleep\n"
			    "\"$VGPU\" run --memory 1g --name web -- true; ls /run/vgpu; kill $!; "
			    "VGPU_SHARE=/run/vgpu/own/share sleep 60 >/dev/null & runs $! sleep\n"
			    "\"$VGPU\" run --memory 1g --name own -- true; ls /run/vgpu; kill $!");

	assert_string_equal(said->out, "own\n");
}

static void a_region_that_only_the_share_names_is_not_touched(void **state)
{
	const struct said *said;
	struct region region;
	unsigned slot, device;

	tool_run(AS "slice $A web; slice $B victim; sed -i 's,^region.*,region "
		    "/tmp/vgpu-54322/victim/region,' /tmp/vgpu-$A/web/share; chown $A "
		    "/tmp/vgpu-$A/web/share");
	assert_int_equal(region_open("/tmp/vgpu-54322/victim/region", &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(
		region_device(&region, "GPU-00000000-1111-2222-3333-444444444444", &device), 0);
	region.file->own.slots[slot].held[device] = UINT64_C(100) << 32;
	said = tool_run("timeout 20 \"$VGPU\" suspend 54321/web --evict");
	assert_string_equal(said->err, "");
	assert_int_equal(said->status, 0);
	assert_int_equal(tool_run("timeout 20 \"$VGPU\" resume 54321/web")->status, 0);
	region_close(&region);
}

/* What cannot be looked at is no process without problems. */
static void a_process_that_nobody_can_look_at_is_a_problem(void **state)
{
	const struct said *said = tool_run(AS "as $A \"$VGPU\" doctor $$");

	assert_int_equal(said->status, 1);
	assert_says(said->out, "in no slice that is seen from here\n");
	assert_says(said->out, "nothing tells whether a quota binds it; root can look\n");
	/* An environment of nearly all that the kernel gives a program. */
	said = tool_run("ulimit -Ss unlimited || exit 77; i=0; x=$(head -c 120000 /dev/zero | tr "
			"'\\0' x)\n"
			"while [ $i -lt 45 ]; do i=$((i + 1)); export x$i=$x; done; sleep 60 & "
			"until grep -qx sleep /proc/$!/comm; do :; done\n"
			"unset $(seq -f x%%g 45); \"$VGPU\" doctor $!; kill $!");
	if (said->status == 77)
		skip();
	assert_says(said->out, "libvgpu.so is not loaded");
}

/* As su leaves it: of the user before, or of a session that is not there. */
static void a_runtime_folder_of_somebody_else_is_not_taken(void **state)
{
	const struct said *said = tool_run(
		AS "mkdir -p /run/user/0 /run/user/$B; chown $B /run/user/$B; "
		   "for folder in /run/user/0 /run/user/$A run; do XDG_RUNTIME_DIR=$folder "
		   "as $A \"$VGPU\" run --memory 1g --name a -- sh -c 'echo $VGPU_SHARE'; done; "
		   "XDG_RUNTIME_DIR=/run/user/$B as $B \"$VGPU\" run --memory 1g --name b -- sh -c "
		   "'echo $VGPU_SHARE'");

	assert_string_equal(said->out,
		"/tmp/vgpu-54321/a/share\n/tmp/vgpu-54321/a/share\n/tmp/vgpu-54321/a/share\n"
		"/run/user/54322/vgpu/b/share\n");
}

static void the_machines_folders_are_held_against_the_model(void **state)
{
	const struct said *said;

	/* Before root has come, Alice makes what Bob needs, too. */
	tool_run(AS "unset VGPU_TURNS; as $A mkdir -m 1777 /dev/shm/vgpu-turns");
	said = tool_run("unset VGPU_TURNS; \"$VGPU\" doctor --machine");
	assert_int_equal(said->status, 1);
	assert_says(said->out, "it belongs to 54321 and not to root");
	said = tool_run("unset VGPU_TURNS; \"$VGPU\" prepare; \"$VGPU\" doctor --machine");
	assert_string_equal(said->err, "");
	assert_null(strstr(said->out, "it belongs to 54321"));
	assert_says(said->out, "/dev/shm/vgpu-turns  root 1777  time slices\n");
	said = tool_run(AS "unset VGPU_TURNS; slice $A web; as $A ln -s /etc/passwd "
			   "/dev/shm/vgpu-turns/GPU-x\n"
			   "as $B mkdir /tmp/vgpu-$B /tmp/vgpu-54399; as $B ln -s /tmp/vgpu-$A "
			   "/tmp/vgpu-54398\n"
			   "as $A chmod 0622 /tmp/vgpu-$A/web/share; \"$VGPU\" doctor --machine; "
			   "\"$VGPU\" doctor --machine --json | python3 -c 'import json, sys; "
			   "print(sum(p[\"wrong\"] is not None for p in "
			   "json.load(sys.stdin)[\"places\"]), \"are wrong\")'");
	assert_says(said->out, "GPU-x  54321 0777  time slices of a device\n    it is a link");
	assert_says(said->out,
		"/tmp/vgpu-54399  54322 0755  slices\n    it belongs to 54322 and not to 54399");
	assert_says(said->out, "/tmp/vgpu-54398  54322 0777  slices\n    it is a link");
	assert_says(said->out, "web/share  54321 0622  a slice's file\n    others may write");
	assert_says(said->out, " are wrong\n");
	assert_int_equal(
		tool_run("setpriv --reuid 54321 --regid 54321 --clear-groups \"$VGPU\" prepare")
			->status,
		1);
	/* A share could not name it. */
	said = tool_run("VGPU_TURNS='/tmp/a b' \"$VGPU\" prepare; ls -d '/tmp/a b'");
	assert_says(said->err, "'/tmp/a b': an absolute path without white space is right");
	assert_string_equal(said->out, "");
}

/* Alice's slice is a link to Bob's at some moments, also between the look for it and the look at it. */
static void a_link_that_comes_and_goes_is_not_followed(void **state)
{
	const struct said *said;
	pid_t pid;

	tool_run(AS
		"slice $A web; slice $B secret; as $A ln -s /tmp/vgpu-$B/secret /tmp/vgpu-$A/link; "
		"sed -i 's/memory .*/memory 7g/' /tmp/vgpu-$B/secret/share");
	pid = fork();
	if (pid == 0) {
		if (setgid(ALICE) < 0 || setuid(ALICE) < 0)
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			syscall(SYS_renameat2, AT_FDCWD, "/tmp/vgpu-54321/web", AT_FDCWD,
				"/tmp/vgpu-54321/link", 2 /* RENAME_EXCHANGE */);
	}
	said = tool_run("for i in 1 2 3 4 5 6 7 8 9 10; do \"$VGPU\" list --all 2>/dev/null; done");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (const char *at = said->out; (at = strstr(at, "54321/")); at++)
		assert_null(memmem(at, strcspn(at, "\n"), " 7G ", 4));
	assert_non_null(strstr(said->out, "54322/secret"));
}

/* What systemd does at boot, before any user is there. */
static void tmpfiles_d_makes_the_folders_that_the_model_has(void **state)
{
	const struct said *said = tool_run(
		"command -v systemd-tmpfiles >/dev/null || exit 77; rm -rf /dev/shm/vgpu-turns; "
		"systemd-tmpfiles --create \"$TMPFILES\"; unset VGPU_TURNS; "
		"\"$VGPU\" doctor --machine");

	if (said->status == 77) {
		puts("skipped: systemd-tmpfiles is not here");
		skip();
	}
	assert_string_equal(said->err, "");
	/* Nothing is said of either; of the machine's other places there may be. */
	assert_says(said->out,
		"/dev/shm/vgpu-turns  root 1777  time slices\n/run/vgpu  root 0700  slices\n/");
}

/* In a root of its own a link leads a process to its own files, and root to those, too. */
static void a_link_in_a_root_of_its_own_leads_to_nothing_of_ours(void **state)
{
	const struct said *said = tool_run(AS
		"share() { printf 'vgpu-share 1\\ndevice * memory %%s\\nend\\n' \"$2\" >\"$1\"; }\n"
		"mkdir /tmp/root && mount --bind / /tmp/root && "
		"mount -t tmpfs none /tmp/root/mnt || exit 77\n"
		"mkdir /tmp/root/mnt/own; share /tmp/root/mnt/own/share 2g; share /tmp/ours 3g\n"
		"ln -s /tmp/ours /tmp/root/mnt/out; ln -s /mnt/own /tmp/root/mnt/in\n"
		"for path in /mnt/out /mnt/in/share /../../mnt/own/share; do "
		"VGPU_SHARE=$path chroot /tmp/root sleep 60 & runs $! sleep; "
		"\"$VGPU\" doctor $! | grep 'limits\\|share file'; kill $!; done\n"
		"umount /tmp/root/mnt /tmp/root; rm -r /tmp/root /tmp/ours");

	if (said->status == 77)
		skip();
	assert_null(strstr(said->out, "3G"));
	assert_says(said->out, "share file /mnt/out, line 0: No such file");
	assert_says(said->out, "memory 2G from /mnt/in/share");
	assert_says(said->out, "memory 2G from /../../mnt/own/share");
}

/* Alice takes the name whenever it is free. */
static void who_is_quick_cannot_keep_root_from_a_shared_folder(void **state)
{
	static const char folder[] = "/dev/shm/vgpu-turns";
	struct stat s;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setgid(ALICE) < 0 || setuid(ALICE) < 0)
			_exit(1);
		for (;;)
			mkdir(folder, 0755);
	}
	for (int i = 0; i < 5 && status != 1; i++) {
		tool_run("rm -rf %s", folder);
		for (int k = 0; k < 1000 && stat(folder, &s) < 0; k++)
			usleep(1000);
		status = tool_run("unset VGPU_TURNS; \"$VGPU\" prepare")->status;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(status, 0);
	assert_int_equal(stat(folder, &s), 0);
	assert_int_equal(s.st_uid, 0);
	tool_run("rm -rf %s /dev/shm/.was-*", folder);
}

/* A mount of the file alone keeps the file that it was, whatever takes its name. */
static void a_share_that_is_mounted_alone_is_noted(void **state)
{
	const struct said *said =
		tool_run("mkdir -p /tmp/grant; printf 'vgpu-share 1\ndevice * memory 1g\nend\n' "
			 ">/tmp/grant/share; "
			 ": >/tmp/alone; mount --bind /tmp/grant/share /tmp/alone\n"
			 "for s in /tmp/alone /tmp/grant/share; do VGPU_SHARE=$s "
			 "LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" "
			 "sleep 60 & until grep -q libvgpu /proc/$!/maps; do sleep 0.01; done; "
			 "\"$VGPU\" doctor $!; kill $!; done; umount /tmp/alone");

	assert_says(said->out, "/tmp/alone is mounted as a single file");
	assert_null(strstr(said->out, "/tmp/grant/share is mounted"));
}

/* Where the slice has no lock, a change is made without one: the owner can move the folder at any moment. */
static void root_makes_nothing_beside_a_users_slice(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; rm /tmp/vgpu-$A/web/lock; mkfifo /tmp/vgpu-$A/web/share.new\n"
		   "\"$VGPU\" set $A/web --memory 2g; ls -A /tmp/vgpu-$A; ls -A /tmp/vgpu-$A/web; "
		   "grep -h device /tmp/vgpu-$A/web/share; stat -c %%u /tmp/vgpu-$A/web/share");

	assert_says(said->out, "web\nshare\nshare.new\ndevice * memory 2147483648\n54321\n");
	assert_says(said->err, "it is changed without its lock");
}

/* Alice has the name in /tmp before Bob has. */
static void a_name_that_another_user_has_taken_is_given_back(void **state)
{
	const struct said *said = tool_run(AS
		"bob() { as $B \"$VGPU\" run --memory 1g --name b -- sh -c 'echo $VGPU_SHARE'; }\n"
		"as $A mkdir -m 0755 /tmp/vgpu-$B; bob; mkdir -p /run/user/$B; "
		"chown $B /run/user/$B; bob; rm -r /run/user\n"
		"\"$VGPU\" prepare; bob; stat -c '%%u %%a' /tmp/vgpu-$B");

	assert_string_equal(
		said->out, "/run/user/54322/vgpu/b/share\n/tmp/vgpu-54322/b/share\n54322 700\n");
	assert_says(said->err,
		"the folder for slices, /tmp/vgpu-54322, belongs to user 54321; `vgpu prepare`");
}

static void what_anybody_can_fill_is_listed_in_part(void **state)
{
	const struct said *said = tool_run(AS "unset VGPU_TURNS; \"$VGPU\" prepare; "
					      "U=/dev/shm/vgpu-turns/GPU-0; mkdir -m 1777 $U; "
					      "slice $A web\n"
					      "as $A sh -c \"for i in \\$(seq 1000); do ln -s x "
					      "$U/\\$i; done; for i in \\$(seq 40); "
					      "do cp -r /tmp/vgpu-$A/web /tmp/vgpu-$A/s\\$i; done; "
					      "chmod 0777 /tmp/vgpu-$A/s39\"\n"
					      "\"$VGPU\" doctor --machine >/tmp/out; wc -l "
					      "</tmp/out; cat /tmp/out; rm -r $U /tmp/out");

	assert_in_range(atoi(said->out), 1, 260);
	assert_says(said->out, "/GPU-0  968 more  not listed\n    they are wrong");
	assert_says(said->out, "/tmp/vgpu-54321  8 more  not listed\n");
	assert_says(said->out, "/s39  54321 0777  a slice\n");
	assert_says(said->out, " wrong. Its owner, or root, has to change or remove it.");
}

/* Where nothing names an accounting file, Alice's is not Bob's, and neither can keep the other from one. */
static void the_default_region_is_no_other_users(void **state)
{
	static const char run[] =
		AS "build=${VGPU%%/src/cli/vgpu}; tenant() { as $1 env CUDA_DEVICE_MEMORY_LIMIT=2g "
		   "LD_PRELOAD=$build/src/tenant/libvgpu.so "
		   "LD_LIBRARY_PATH=$build/sim/cuda:$build/sim/nvml $build/examples/tenant "
		   "--blocks 1 >/dev/null && echo $1 had memory; }\n"
		   "cd /tmp; rm -f cudevshr.cache*; %s; stat -c '%%n %%u %%a' cudevshr.cache*; "
		   "rm -f cudevshr.cache*";
	char command[4096];
	const struct said *said;

	snprintf(command, sizeof(command), run, "as $A touch cudevshr.cache; tenant $B");
	said = tool_run("%s", command);
	assert_string_equal(said->out,
		"54322 had memory\ncudevshr.cache 54321 644\ncudevshr.cache.54322 54322 600\n");
	snprintf(command, sizeof(command), run, "tenant $A; tenant $B; tenant $A; tenant 0");
	said = tool_run("%s", command);
	assert_string_equal(said->out,
		"54321 had memory\n54322 had memory\n54321 had memory\n0 had memory\n"
		"cudevshr.cache 54321 600\ncudevshr.cache.0 0 666\ncudevshr.cache.54322 54322 "
		"600\n");
	/* Root's is everybody's, as in a container. */
	snprintf(command, sizeof(command), run, "tenant 0; tenant $B");
	said = tool_run("%s", command);
	assert_string_equal(said->out, "0 had memory\n54322 had memory\ncudevshr.cache 0 666\n");
	snprintf(command, sizeof(command), run,
		"as $A touch cudevshr.cache cudevshr.cache.$B; as $A chmod 0666 cudevshr.cache.$B; "
		"tenant $B");
	said = tool_run("%s", command);
	assert_null(strstr(said->out, "had memory"));
	assert_says(said->err, "path=/tmp/cudevshr.cache.54322");
	assert_says(said->err, "the file is another user's");
}

static void a_long_name_widens_its_own_row_alone(void **state)
{
	const struct said *said = tool_run(AS "slice $B web; slice $A x; as $A mv /tmp/vgpu-$A/x "
					      "/tmp/vgpu-$A/$(printf %%0250d 0)\n"
					      "\"$VGPU\" list --all | grep ^$B.web | wc -c");

	assert_in_range(atoi(said->out), 1, 260);
}

static void a_simulated_slice_of_another_user_needs_sim_for_a_part(void **state)
{
	const struct said *said = tool_run(AS "slice $A web; \"$VGPU\" set $A/web --memory 50%%");

	assert_says(said->err, "--sim asks the simulated node");
}

/* Alice's process, which holds all locks of the slice's file, or a lease on it; 0 where there are no leases here. */
static pid_t hold(const char *file, bool is_lease)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int tell[2], outcome = -1, fd;
	char path[64];
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(ALICE) < 0 || setuid(ALICE) < 0)
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGIO, SIG_IGN);
		snprintf(path, sizeof(path), "/tmp/vgpu-54321/web/%s", file);
		fd = open(path, is_lease ? O_RDONLY : O_RDWR);
		outcome = is_lease ? fcntl(fd, F_SETLEASE, F_WRLCK) : fcntl(fd, F_SETLK, &all);
		if (write(tell[1], &outcome, sizeof(outcome)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(tell[0], &outcome, sizeof(outcome)), sizeof(outcome));
	close(tell[0]);
	close(tell[1]);
	if (outcome == 0)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static void let_go(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#define WEB "cd /tmp/vgpu-54321/web; "

static void no_lock_of_the_owner_keeps_root_out(void **state)
{
	const struct said *said = tool_run(AS "slice $A web");
	pid_t pid = hold("lock", false);

	assert_true(pid);
	said = tool_run(WEB "\"$VGPU\" set 54321/web --memory 2g >/dev/null && grep device share");
	assert_says(said->out, "memory 2147483648\n");
	assert_says(said->err, "being changed by another vgpu that does not come to an end; it is "
			       "changed without its lock");
	said = tool_run(WEB "\"$VGPU\" suspend 54321/web && grep -x suspended share");
	assert_string_equal(said->out, "suspended\n");
	let_go(pid);
	said = tool_run(AS WEB "rm lock; as $A mkfifo lock; \"$VGPU\" resume 54321/web && "
			       "! grep suspended share");
	assert_int_equal(said->status, 0);
	assert_says(
		said->err, "open its lock: it is no regular file; it is changed without its lock");
}

static void a_lease_of_the_owner_is_named(void **state)
{
	const struct said *said = tool_run(AS "slice $A web");
	pid_t pid = hold("lock", true);
	char expected[100];

	if (!pid)
		skip();
	said = tool_run(WEB "\"$VGPU\" set 54321/web --memory 2g >/dev/null && grep device share");
	assert_says(said->out, "memory 2147483648\n");
	let_go(pid);
	pid = hold("share", true);
	snprintf(expected, sizeof(expected), "process %d has a lease on its share file", (int)pid);
	said = tool_run("\"$VGPU\" set 54321/web --memory 3g");
	assert_int_equal(said->status, 1);
	assert_says(said->err, expected);
	let_go(pid);
	said = tool_run(WEB "\"$VGPU\" set 54321/web --memory 3g >/dev/null && grep device share");
	assert_says(said->out, "memory 3221225472\n");
}

static void what_root_does_not_believe_is_named(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; as $A chmod 0777 /tmp/vgpu-$A; \"$VGPU\" set $A/web --memory 2g; "
		   "\"$VGPU\" suspend web");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "slice '54321/web' is not believed: others may write to its folder: "
			       "/tmp/vgpu-54321 has mode 0777; `chmod go-w`, by user 54321");
	assert_says(said->err, "slice 'web' is not believed: others");
	said = tool_run(AS "as $A chmod 0700 /tmp/vgpu-$A; as $A chmod 0770 /tmp/vgpu-$A/web; "
			   "\"$VGPU\" set $A/web --memory 2g");
	assert_says(said->err, "/tmp/vgpu-54321/web has mode 0770");
}

/*
 * A program that maps a file as a region is, runs a command, and stays until it may end; and functions that wait for it and let
 * it end. Its file is a region of Alice's.
 */
#define MAPS                                                                                      \
	"ready() { for i in $(seq 1000); do test -e /tmp/x/ready && break; sleep 0.01; done; }\n" \
	"look() { ready; \"$VGPU\" list --all 2>&1 | "                                            \
	"grep -o '^[0-9]*/*train\\|^[0-9]*/*root\\|^vgpu: .*'; "                                  \
	": >/tmp/x/end; wait; rm -f /tmp/x/ready /tmp/x/end; }\n"

static void begin_maps(void)
{
	struct region region;

	tool_run("rm -rf /tmp/x; mkdir -p /tmp/x/train /tmp/x/root");
	assert_int_equal(region_open("/tmp/x/train/region", &region), 0);
	region_close(&region);
	tool_run("cat >/tmp/x/map.py <<'END'\n"
		 "import mmap, os, subprocess, sys, time\n"
		 "f = open(sys.argv[1], 'r+b')\n"
		 "m = mmap.mmap(f.fileno(), %zu)\n"
		 "subprocess.check_call(['sh', '-c', sys.argv[2]])\n"
		 "open('/tmp/x/ready', 'w')\n"
		 "while not os.path.exists('/tmp/x/end'): time.sleep(0.01)\n"
		 "END\n"
		 "chown -R 54321:54321 /tmp/x; chmod 755 /tmp/x /tmp/x/train",
		sizeof(struct region_file));
}

/* What a process has mapped is seen, whatever is mounted over its path, and as its user's. */
static void what_a_process_has_mapped_cannot_be_hidden(void **state)
{
	const struct said *said;

	begin_maps();
	/* in its own mount namespace: tmpfs over it, another file over it, its tmpfs unmounted, another root */
	said = tool_run(AS MAPS
		"own() { as $A unshare -Urm sh -c \"$1\" & look; }; M='python3 /tmp/x/map.py'\n"
		"R=/tmp/x/train/region; own \"$M $R 'mount -t tmpfs none /tmp/x/train'\"\n"
		"own \"$M $R 'cp /tmp/x/map.py /tmp/x/other; mount --bind /tmp/x/other $R'\"\n"
		"own \"cp $R /tmp/x/copy; mount -t tmpfs none /tmp/x/train; cp /tmp/x/copy $R; "
		"$M $R 'umount -l /tmp/x/train'\"\n"
		"own \"mount --rbind / /tmp/x/root; chroot /tmp/x/root $M $R true\"");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "54321/train\n54321/train\n54321/root\n54321/train\n");
}

/* Root opens what is mapped and nothing that has taken its path. */
static void what_is_mounted_over_a_mapped_path_is_not_opened(void **state)
{
	const struct said *said;

	begin_maps();
	said = tool_run(
		AS MAPS "as $A sh -c 'cd /tmp/x; mkdir other; cp train/region other/region; "
			"touch -d 2001-01-01 other/region'; T=$(stat -c %%X /tmp/x/other/region)\n"
			"as $A unshare -Urm sh -c \"python3 /tmp/x/map.py /tmp/x/train/region "
			"'mount --bind "
			"/tmp/x/other /tmp/x/train'\" & ready; \"$VGPU\" list --all >/dev/null; "
			"\"$VGPU\" doctor >/dev/null; : >/tmp/x/end; wait\n"
			"echo $(($(stat -c %%X /tmp/x/other/region) - T))");
	assert_string_equal(said->out, "0\n");
}

/* An overlay of the user's own may have FUSE below it: what is there is not opened, and a line says so. */
static void a_mapping_on_an_overlay_of_a_users_is_told_and_not_opened(void **state)
{
	const struct said *said;

	begin_maps();
	said = tool_run(AS MAPS
		"as $A unshare -Urm sh -c 'cd /tmp/x; mkdir u w m; mount -t overlay none -o "
		"userxattr,lowerdir=train,upperdir=u,workdir=w m || : >ready; "
		"python3 map.py m/region true' & look");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out,
		"vgpu: 1 mapping that may be a region's was not looked at: it is on a file system "
		"that a user may have mounted and that might never answer\n");
}

/* /proc/PID/status is longer than a page then. */
static void a_process_with_many_groups_is_seen(void **state)
{
	const struct said *said;

	begin_maps();
	said = tool_run(
		MAPS "setpriv --reuid 54321 --regid 54321 --groups $(seq -s , 100001 102000) "
		     "-- sh -c 'python3 /tmp/x/map.py /tmp/x/train/region true' & look");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "54321/train\n");
}

/* A region may name anybody's process: it is not shown as that one. */
static void a_process_of_somebody_else_is_not_shown_as_the_slices(void **state)
{
	static const uid_t users[] = {BOB, 0, ALICE};
	const struct said *said;
	struct process_identity id;
	struct region region;
	unsigned slot;

	tool_run(AS "slice $A web");
	assert_int_equal(region_open("/tmp/vgpu-54321/web/region", &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		pid_t victim = start_victim(users[i]);

		assert_int_equal(process_identify(victim, &id), 0);
		region.file->own.slots[slot].pid = (uint32_t)victim;
		region.file->own.slots[slot].start_time = id.start_time;
		/* until it is another user's */
		usleep(100000);
		said = tool_run("\"$VGPU\" list --processes | grep -cw '(%d)'; \"$VGPU\" list "
				"--json | grep -c '\"pid\": %d,'",
			(int)victim, (int)victim);
		assert_string_equal(said->out, users[i] == ALICE ? "0\n1\n" : "1\n0\n");
		kill(victim, SIGKILL);
		waitpid(victim, NULL, 0);
	}
	region_close(&region);
}

/* A region that many have mapped is not many: it is who maps many who is not looked at without an end. */
static void who_maps_many_regions_keeps_root_waiting_no_longer(void **state)
{
	const struct said *said;

	begin_maps();
	said = tool_run(AS MAPS
		"cat >/tmp/x/many.py <<'END'\n"
		"import mmap, os, time\n"
		"kept = []\n"
		"for i in range(300):\n"
		"    f = open('/tmp/x/train/%%d.cache' %% i, 'w+b')\n"
		"    f.truncate(os.path.getsize('/tmp/x/train/region'))\n"
		"    kept.append(mmap.mmap(f.fileno(), 0))\n"
		"open('/tmp/x/ready', 'w')\n"
		"while not os.path.exists('/tmp/x/end'): time.sleep(0.01)\n"
		"END\n"
		"for as in 'as $A' 'unshare -m'; do eval \"$as sh -c 'python3 /tmp/x/many.py'\" & "
		"ready; for c in 'list --all' doctor; do \"$VGPU\" $c 2>&1 | grep '^vgpu: user'; "
		"done; : >/tmp/x/end; wait; rm -f /tmp/x/ready /tmp/x/end; done");
#define LINE " has more than 256 folders and regions where slices are: 44 were not looked at\n"
	assert_string_equal(said->out,
		"vgpu: user 54321" LINE "vgpu: user 54321" LINE
		"vgpu: user root of a container" LINE "vgpu: user root of a container" LINE);
}

static bool is_possible(void)
{
	if (geteuid() != 0) {
		puts("skipped: this is not root, who alone can be several users");
		return false;
	}
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		perror("skipped: no mount namespace of its own");
		return false;
	}
	if (system("setpriv --reuid 54321 --regid 54321 --clear-groups true") != 0) {
		puts("skipped: setpriv cannot change the user here");
		return false;
	}
	if (system("setpriv --reuid 54321 --regid 54321 --clear-groups test -x \"$VGPU\"") != 0) {
		puts("skipped: other users cannot reach the build folder");
		return false;
	}
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_slice_is_called_by_its_user_where_several_have_the_name, clear),
		cmocka_unit_test_setup(
			a_user_with_many_folders_keeps_root_waiting_no_longer, clear),
		cmocka_unit_test_setup(folders_that_lie_about_their_user_are_not_seen, clear),
		cmocka_unit_test_setup(nothing_but_regular_files_is_opened, clear),
		cmocka_unit_test_setup(root_makes_nothing_beside_a_users_slice, clear),
		cmocka_unit_test_setup(no_lock_of_the_owner_keeps_root_out, clear),
		cmocka_unit_test_setup(a_lease_of_the_owner_is_named, clear),
		cmocka_unit_test_setup(what_root_does_not_believe_is_named, clear),
		cmocka_unit_test_setup(a_name_that_another_user_has_taken_is_given_back, clear),
		cmocka_unit_test_setup(what_anybody_can_fill_is_listed_in_part, clear),
		cmocka_unit_test_setup(the_default_region_is_no_other_users, clear),
		cmocka_unit_test_setup(a_long_name_widens_its_own_row_alone, clear),
		cmocka_unit_test_setup(
			a_simulated_slice_of_another_user_needs_sim_for_a_part, clear),
		cmocka_unit_test_setup(a_process_that_only_the_region_names_is_not_evicted, clear),
		cmocka_unit_test_setup(a_region_that_only_the_share_names_is_not_touched, clear),
		cmocka_unit_test_setup(an_environment_without_an_end_holds_up_nobody, clear),
		cmocka_unit_test_setup(a_strangers_environment_keeps_no_slice_of_roots, clear),
		cmocka_unit_test_setup(a_share_that_is_mounted_alone_is_noted, clear),
		cmocka_unit_test_setup(a_link_in_a_root_of_its_own_leads_to_nothing_of_ours, clear),
		cmocka_unit_test_setup(who_is_quick_cannot_keep_root_from_a_shared_folder, clear),
		cmocka_unit_test_setup(a_link_that_comes_and_goes_is_not_followed, clear),
		cmocka_unit_test_setup(a_process_that_nobody_can_look_at_is_a_problem, clear),
		cmocka_unit_test_setup(a_runtime_folder_of_somebody_else_is_not_taken, clear),
		cmocka_unit_test_setup(the_machines_folders_are_held_against_the_model, clear),
		cmocka_unit_test_setup(what_a_process_has_mapped_cannot_be_hidden, clear),
		cmocka_unit_test_setup(what_is_mounted_over_a_mapped_path_is_not_opened, clear),
		cmocka_unit_test_setup(
			a_mapping_on_an_overlay_of_a_users_is_told_and_not_opened, clear),
		cmocka_unit_test_setup(a_process_with_many_groups_is_seen, clear),
		cmocka_unit_test_setup(
			a_process_of_somebody_else_is_not_shown_as_the_slices, clear),
		cmocka_unit_test_setup(who_maps_many_regions_keeps_root_waiting_no_longer, clear),
		cmocka_unit_test_setup(tmpfiles_d_makes_the_folders_that_the_model_has, clear),
	};

	return is_possible() ? cmocka_run_group_tests_name("cli users", tests, set_up, NULL) : 77;
}

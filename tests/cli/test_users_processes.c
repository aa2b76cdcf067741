/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu as root beside users who mean harm (tests/cli/users.h): processes, and what they have mapped. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "region/process.h"
#include "region/slot.h"
#include "tests/cli/tool.h"
#include "tests/cli/users.h"

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
	users_end(victim);
}

static void a_process_that_only_the_region_names_is_not_evicted(void **state)
{
	evict_names(users_start(BOB, NULL, NULL), 0, 1, "which is not of the slice's user (54321)");
	evict_names(users_start(0, NULL, NULL), 0, 1, "which is not of the slice's user (54321)");
	evict_names(users_start(ALICE, NULL, NULL), 0, 1, "which has not mapped that file");
	/* No process of that number began then. The driver, which knows of numbers alone, is not even asked for. */
	evict_names(users_start(BOB, NULL, NULL), 1, 0, "");
	evict_names(users_start(0, NULL, NULL), (uint64_t)-1, 0, "");
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

/* Its environment is, by its own word, some TiB that nobody has touched. */
static int claim_memory(void *context)
{
	const size_t bytes = (size_t)1 << 44;
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
	static const struct user_process claimer = {.begin = claim_memory};
	int outcome;
	pid_t pid = users_start(ALICE, &claimer, &outcome);

	if (outcome == 0)
		outcome = tool_run("timeout -s KILL 20 \"$VGPU\" run --memory 1g -- true && "
				   "! timeout 20 \"$VGPU\" doctor %d && "
				   "grep -q 'nothing tells' \"$HERE/out\"",
			(int)pid)
				  ->status;
	else
		print_message("skipped: this kernel does not let a process say so\n");
	users_end(pid);
	assert_in_range(outcome + 1, 0, 1);
}

static void a_strangers_environment_keeps_no_slice_of_roots(void **state)
{
	const struct said *said =
		tool_run(AS "setpriv --reuid $A --regid $A --clear-groups -- env "
			    "VGPU_SHARE=/run/vgpu/web/share sleep 600 & runs $! sleep\n"
			    "\"$VGPU\" run --memory 1g --name web -- true; ls /run/vgpu; kill $!; "
			    "VGPU_SHARE=/run/vgpu/own/share sleep 600 >/dev/null & runs $! sleep\n"
			    "\"$VGPU\" run --memory 1g --name own -- true; ls /run/vgpu; kill $!");

	assert_string_equal(said->out, "own\n");
}

/* What cannot be looked at is no process without problems. */
static void a_process_that_nobody_can_look_at_is_a_problem(void **state)
{
	const struct said *said = tool_run(AS "as $A \"$VGPU\" doctor $$");

	assert_int_equal(said->status, 1);
	assert_says(said->out, "in no slice that is seen from here\n");
	assert_says(said->out, "nothing tells whether a quota binds it; root can look\n");
	/* An environment of nearly all that the kernel gives a program. */
	said = tool_run(
		BY "ulimit -Ss unlimited || exit 77; i=0; x=$(head -c 120000 /dev/zero | tr "
		   "'\\0' x)\n"
		   "while [ $i -lt 45 ]; do i=$((i + 1)); export x$i=$x; done; sleep 600 & "
		   "runs $! sleep\n"
		   "unset $(seq -f x%%g 45); \"$VGPU\" doctor $!; kill $!");
	if (said->status == 77)
		skip();
	assert_says(said->out, "libvgpu.so is not loaded");
}

/*
 * A program that maps a file as a region is, runs a command, and stays until it may end; and functions that wait for it and let
 * it end. Its file is a region of Alice's.
 */
#define MAPS                                                     \
	"ready() { by 'test -e /tmp/x/ready'; }\n"               \
	"look() { ready; \"$VGPU\" list --all 2>&1 | "           \
	"grep -o '^[0-9]*/*train\\|^[0-9]*/*root\\|^vgpu: .*'; " \
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

static const char fuse_program[] =
	"# FUSE that answers until it is mute, and an overlay on it: who looks there asks as the "
	"user who mounted it\n"
	"import ctypes, os, struct, sys, time\n"
	"libc = ctypes.CDLL(None, use_errno=True)\n"
	"def mount(what, at, kind, data):\n"
	"    if libc.mount(what, at, kind, 0, data) != 0: sys.exit(77)\n"
	"fd = os.open('/tmp/x/fuse', os.O_RDWR)\n"
	"mount(b'none', b'/tmp/x/f', b'fuse', b'fd=%d,rootmode=40000,user_id=0,group_id=0' % fd)\n"
	"attr = struct.pack('<6Q10I', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)\n"
	"# init, getattr, statfs, opendir, readdir, releasedir\n"
	"answers = {26: struct.pack('<4I2H2I2HI28x', 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0), 3: "
	"bytes(16) + attr, 17: bytes(80), 27: bytes(16), 28: b'', 29: b''}\n"
	"if os.fork() == 0:\n"
	"    while not os.path.exists('/tmp/x/end'):\n"
	"        if os.path.exists('/tmp/x/ready'): time.sleep(0.01); continue\n"
	"        size, op, unique = struct.unpack_from('<IIQ', os.read(fd, 135168))\n"
	"        if op in (2, 36, 42): continue\n"
	"        data = answers.get(op, b'')\n"
	"        os.write(fd, struct.pack('<IiQ', 16 + len(data), 0 if op in answers else -2 if op "
	"== 1 else -38, unique) + data)\n"
	"    os._exit(0)\n"
	"mount(b'none', b'/tmp/x/m', b'overlay', "
	"b'userxattr,lowerdir=/tmp/x/f,upperdir=/tmp/x/u,workdir=/tmp/x/w')\n"
	"open('/tmp/x/ready', 'w').close()\n"
	"os.execvp(sys.argv[1], sys.argv[1:])\n";

/* Alice's overlay on FUSE that does not answer: what her process names there keeps root waiting for nothing. */
static void what_a_process_names_on_a_users_file_system_is_told_and_not_asked(void **state)
{
	const struct said *said;

	tool_run("rm -rf /tmp/x; mkdir -p /tmp/x/f /tmp/x/u /tmp/x/w /tmp/x/m; mknod -m 666 "
		 "/tmp/x/fuse c 10 229; "
		 "cat >/tmp/x/fuse.py <<'END'\n%s"
		 "END\n"
		 "chown -R 54321:54321 /tmp/x",
		fuse_program);
	said = tool_run(AS MAPS
		"share() { printf \"vgpu-share 1\\n$1\\ndevice * memory 1073741824 cores "
		"10\\nend\\n\" >$2; }\n"
		"share 'turns /tmp/x/m/turns' /tmp/x/turns; share 'mps /tmp/x/m/mps' /tmp/x/mps\n"
		"for v in VGPU_SHARE=/tmp/x/m/a/share VGPU_SHARE=/tmp/x/link/share "
		"CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/x/m/a/region VGPU_SHARE=/tmp/x/mps "
		"VGPU_SHARE=/tmp/x/turns; do ln -s m/.. /tmp/x/link; "
		"setpriv --reuid $A --regid $A --clear-groups -- unshare -Urm python3 "
		"/tmp/x/fuse.py env $v sleep 600 "
		">/dev/null 2>&1 & p=$!; ready || exit 77; runs $p sleep || exit 77; timeout 10 "
		"\"$VGPU\" doctor $p >/tmp/x/out || echo status $?; grep ^Problems -A9 /tmp/x/out; "
		"kill $p; : >/tmp/x/end; wait; rm -f /tmp/x/ready /tmp/x/end /tmp/x/link; done");
	if (said->status == 77)
		skip();
	assert_null(strstr(said->out, "status 124"));
#define STRANGE "it is on a file system that a user may have mounted and that might never answer"
	assert_says(said->out, "share file /tmp/x/m/a/share, line 0: " STRANGE);
	assert_says(said->out, "its region /tmp/x/m/a/region: " STRANGE);
	assert_says(said->out, "no MPS daemon runs in /tmp/x/m/mps");
	assert_says(said->out, "time slices /tmp/x/m/turns cannot be read (" STRANGE);
}

/* /proc/PID/status is longer than a page then. */
static void a_process_with_many_groups_is_seen(void **state)
{
	const struct said *said;

	begin_maps();
	said = tool_run(
		BY MAPS "setpriv --reuid 54321 --regid 54321 --groups $(seq -s , 100001 102000) "
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
		pid_t victim = users_start(users[i], NULL, NULL);

		assert_int_equal(process_identify(victim, &id), 0);
		region.file->own.slots[slot].pid = (uint32_t)victim;
		region.file->own.slots[slot].start_time = id.start_time;
		said = tool_run("\"$VGPU\" list --processes | grep -cw '(%d)'; \"$VGPU\" list "
				"--json | grep -c '\"pid\": %d,'",
			(int)victim, (int)victim);
		assert_string_equal(said->out, users[i] == ALICE ? "0\n1\n" : "1\n0\n");
		users_end(victim);
	}
	region_close(&region);
}

/* As a program in a container without root: of a user that is one of Alice's subordinate ones. */
#define SUBORDINATE 100999

static int begin_container(void *region)
{
	int fd = open(region, O_RDWR);
	void *at =
		mmap(NULL, sizeof(struct region_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED || unshare(CLONE_NEWUSER) < 0 ? -1 : 0;
}

static void change_user(void *region)
{
	if (getuid() == 1000)
		pause();
	else if (setgid(1000) < 0 || setuid(1000) < 0) /* until root has mapped the numbers */
		usleep(1000);
}

static bool is_of(pid_t pid, uid_t user)
{
	return tool_run("grep -q '^Uid:.%u.%u.%u' /proc/%d/status", user, user, user, (int)pid)
		       ->status == 0;
}

static void a_process_of_a_users_container_is_shown_as_hers(void **state)
{
	static char region_path[] = "/tmp/x/train/region";
	static const struct user_process container = {
		.begin = begin_container, .again = change_user, .context = region_path};
	static const uid_t users[] = {ALICE, BOB};
	uint64_t deadline_ns = users_deadline();
	const struct said *said;
	struct process_identity id;
	struct region region;
	int outcome;
	pid_t pid;

	begin_maps();
	pid = users_start(ALICE, &container, &outcome);
	if (outcome != 0) {
		users_end(pid);
		skip();
	}
	tool_run("for f in uid gid; do printf '0 54321 1\n1 100000 65536\n' >/proc/%d/${f}_map; "
		 "done",
		(int)pid);
	while (!is_of(pid, SUBORDINATE))
		users_pause(deadline_ns);
	said = tool_run("\"$VGPU\" list --all | grep -o '^[0-9]*/train'");
	assert_string_equal(said->out, "54321/train\n");
	assert_int_equal(process_identify(pid, &id), 0);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		unsigned slot;
		char path[64];

		tool_run(AS "slice %u web", users[i]);
		snprintf(path, sizeof(path), "/tmp/vgpu-%u/web/region", users[i]);
		assert_int_equal(region_open(path, &region), 0);
		assert_int_equal(slot_claim(&region, &slot), 0);
		region.file->own.slots[slot].pid = (uint32_t)pid;
		region.file->own.slots[slot].start_time = id.start_time;
		said = tool_run("\"$VGPU\" list --processes | grep -cw '(%d)'; \"$VGPU\" list "
				"--json | grep -c '\"pid\": %d,'",
			(int)pid, (int)pid);
		assert_string_equal(said->out, users[i] == ALICE ? "0\n1\n" : "1\n0\n");
		region_close(&region);
		users_clear(state);
	}
	users_end(pid);
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

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_process_that_only_the_region_names_is_not_evicted, users_clear),
		cmocka_unit_test_setup(
			a_region_that_only_the_share_names_is_not_touched, users_clear),
		cmocka_unit_test_setup(an_environment_without_an_end_holds_up_nobody, users_clear),
		cmocka_unit_test_setup(
			a_strangers_environment_keeps_no_slice_of_roots, users_clear),
		cmocka_unit_test_setup(a_process_that_nobody_can_look_at_is_a_problem, users_clear),
		cmocka_unit_test_setup(what_a_process_has_mapped_cannot_be_hidden, users_clear),
		cmocka_unit_test_setup(
			what_is_mounted_over_a_mapped_path_is_not_opened, users_clear),
		cmocka_unit_test_setup(
			a_mapping_on_an_overlay_of_a_users_is_told_and_not_opened, users_clear),
		cmocka_unit_test_setup(
			what_a_process_names_on_a_users_file_system_is_told_and_not_asked,
			users_clear),
		cmocka_unit_test_setup(a_process_with_many_groups_is_seen, users_clear),
		cmocka_unit_test_setup(
			a_process_of_somebody_else_is_not_shown_as_the_slices, users_clear),
		cmocka_unit_test_setup(
			who_maps_many_regions_keeps_root_waiting_no_longer, users_clear),
		cmocka_unit_test_setup(
			a_process_of_a_users_container_is_shown_as_hers, users_clear),
	};

	return cmocka_run_group_tests_name("cli users processes", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

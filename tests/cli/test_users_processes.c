/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu as root beside users who mean harm (tests/cli/users.h): processes. */
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

/* By a number, and as many ticks later as it says than that process began; with what is said of it, and what when it is to come back. */
static void evict_names(pid_t victim, uint64_t later, const char *expected, const char *on_return)
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
	assert_int_equal(said->status, 1);
	assert_says(said->err, expected);
	region.file->own.slots[slot].evicted_bytes[device] = UINT64_C(100) << 20;
	said = tool_run("timeout 20 \"$VGPU\" resume 54321/web");
	assert_int_equal(said->status, *on_return ? 1 : 0);
	assert_says(said->err, on_return);
	region_close(&region);
	users_end(victim);
}

static void a_process_that_only_the_region_names_is_not_evicted(void **state)
{
	static const char others[] = "which is not of the slice's user (54321)",
			  own[] = "which has not mapped that file",
			  none[] = "is not of the process that has this number now";

	evict_names(users_start(BOB, NULL, NULL), 0, others, others);
	evict_names(users_start(0, NULL, NULL), 0, others, others);
	evict_names(users_start(ALICE, NULL, NULL), 0, own, own);
	/*
	 * No process of that number began then. The driver, which knows of numbers alone, is not even asked for; and what somebody holds who
	 * lives is not said to be away.
	 */
	evict_names(users_start(BOB, NULL, NULL), 1, none, "");
	evict_names(users_start(0, NULL, NULL), (uint64_t)-1, none, "");
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
	assert_int_equal(chown("/tmp/vgpu-54321/web/region", ALICE, ALICE), 0);
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

/* Each is looked at in several ways: of a user 2048 are, and of what was not looked at nobody knows whether it is a slice's. */
static void who_has_many_processes_keeps_root_waiting_no_longer(void **state)
{
	const struct said *said;

	users_begin_maps();
	said = tool_run(AS MAPS
		"slice $A web; slice $B web; as $A mkfifo /tmp/x/never\n"
		"as $A sh -c 'i=0; while [ $i -lt 2100 ]; do : </tmp/x/never & i=$((i + 1)); done; "
		": >/tmp/x/ready; wait' & ready\n"
		"for c in list 'top --once' doctor; do \"$VGPU\" $c 2>&1 | "
		"grep -o '^vgpu: user.*\\|^[s0-9]*[lice ]*543[^ ]*'; done; exec 3<>/tmp/x/never; "
		"wait");
#define MANY                                                                                    \
	"vgpu: user 54321 has more than 2048 processes: 53 were not looked at, and what these " \
	"have mapped may be regions\n"
	assert_string_equal(said->err, "");
	assert_string_equal(
		said->out, "54321/web\n" MANY "54321/web\n" MANY MANY "slice 54321/web\n");
}

/* A region may name a process as often as it has slots. */
static void doctor_looks_at_some_processes_of_a_users_slices(void **state)
{
	static struct region regions[300];
	const struct said *said;
	struct process_identity id;
	pid_t pid = users_start(ALICE, NULL, NULL);
	unsigned slot;

	tool_run(AS "slice $A web");
	assert_int_equal(process_identify(pid, &id), 0);
	for (size_t i = 0; i < ARRAY_SIZE(regions); i++) {
		assert_int_equal(region_open("/tmp/vgpu-54321/web/region", &regions[i]), 0);
		assert_int_equal(chown("/tmp/vgpu-54321/web/region", ALICE, ALICE), 0);
		assert_int_equal(slot_claim(&regions[i], &slot), 0);
		regions[i].file->own.slots[slot].pid = (uint32_t)pid;
		regions[i].file->own.slots[slot].start_time = id.start_time;
	}
	said = tool_run("\"$VGPU\" doctor --json | grep -c '\"slice\": \"web\"'");
	for (size_t i = 0; i < ARRAY_SIZE(regions); i++)
		region_close(&regions[i]);
	users_end(pid);
	assert_string_equal(said->out, "256\n");
	assert_string_equal(said->err,
		"vgpu: of users and containers with more than 256 processes in slices 44 "
		"were not looked at\n");
}

/* What these have of an environment costs time as well, also where all share one. */
static void who_has_much_of_an_environment_keeps_root_waiting_no_longer(void **state)
{
	const struct said *said;

	users_begin_maps();
	said = tool_run(AS MAPS
		"ulimit -Ss unlimited || exit 77; slice $A web; slice $B web; "
		"as $A mkfifo /tmp/x/never; i=0; x=$(head -c 120000 /dev/zero | tr '\\0' x)\n"
		"(while [ $i -lt 45 ]; do i=$((i + 1)); export x$i=$x; done; "
		"as $A sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do : </tmp/x/never & "
		"done; "
		": >/tmp/x/ready; wait') & ready\n"
		"\"$VGPU\" list 2>&1 | grep -o '^543[^ ]*'; exec 3<>/tmp/x/never; wait");
	if (said->status == 77)
		skip();
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "54321/web\n");
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
		cmocka_unit_test_setup(
			what_a_process_names_on_a_users_file_system_is_told_and_not_asked,
			users_clear),
		cmocka_unit_test_setup(
			a_process_of_somebody_else_is_not_shown_as_the_slices, users_clear),
		cmocka_unit_test_setup(
			who_has_many_processes_keeps_root_waiting_no_longer, users_clear),
		cmocka_unit_test_setup(
			who_has_much_of_an_environment_keeps_root_waiting_no_longer, users_clear),
		cmocka_unit_test_setup(
			doctor_looks_at_some_processes_of_a_users_slices, users_clear),
	};

	return cmocka_run_group_tests_name("cli users processes", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu as root beside users who mean harm (tests/cli/users.h): what processes have mapped. */
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

/* What a process has mapped is seen, whatever is mounted over its path, and as its user's. */
static void what_a_process_has_mapped_cannot_be_hidden(void **state)
{
	const struct said *said;

	users_begin_maps();
	/* in its own mount namespace: tmpfs over it, another file over it, its tmpfs unmounted, another root */
	said = tool_run(AS MAPS
		"own() { as $A unshare -Urm sh -c \"$1\" & look; }; M='python3 /tmp/x/map.py'\n"
		"R=/tmp/x/train/region; own \"$M $R 'mount -t tmpfs none /tmp/x/train'\"\n"
		"own \"$M $R 'cp /tmp/x/map.py /tmp/x/other; mount --bind /tmp/x/other $R'\"\n"
		"own \"cp $R /tmp/x/copy; mount -t tmpfs none /tmp/x/train; cp /tmp/x/copy $R; "
		"$M $R 'umount -l /tmp/x/train'\"\n"
		"own \"mount --rbind / /tmp/x/root; chroot /tmp/x/root $M $R true\"");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "54321/train\n54321/train\n54321/region\n54321/train\n");
}

/* What it is called is of the region, and not of a process that comes and goes. */
static void a_name_outlives_the_processes_that_have_it(void **state)
{
#define NAMED                                                                               \
	"named() { ready; \"$VGPU\" list --all --json | python3 -c '\nimport json, sys\n"   \
	"for s in json.load(sys.stdin)[\"slices\"]: "                                       \
	"print(s[\"name\"], s[\"region\"])'; : >/tmp/x/end; wait $M; rm -f /tmp/x/ready "   \
	"/tmp/x/end; }\n"                                                                   \
	"contain() { unshare -m sh -c \"mount -t tmpfs none /etc; mkdir /etc/vgpu; touch "  \
	"/etc/vgpu/region; $1; exec python3 /tmp/x/map.py /etc/vgpu/region '$2'\" & M=$!; " \
	"named; }\n"
	const struct said *said;

	users_begin_maps();
	said = tool_run(AS MAPS NAMED
		"for i in 1 2; do contain 'mount --bind /tmp/x/train/region "
		"/etc/vgpu/region' true; done\n"
		"cp /tmp/x/train/region /tmp/x/other; contain 'mount --bind "
		"/tmp/x/train/region /etc/vgpu/region' 'mount --bind "
		"/tmp/x/other /etc/vgpu/region' | sed 's/@[0-9:]* file [0-9:]*$/@FILE/'");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "train /tmp/x/train/region\ntrain /tmp/x/train/region\n"
				       "vgpu@FILE\n");
	/* on a file system that is not here */
	said = tool_run(AS MAPS NAMED
		"unshare -m sh -c 'mount -t tmpfs none /etc; cp /tmp/x/train/region /etc; : "
		">/tmp/x/on; exec sleep 600' & P=$!; by 'test -e /tmp/x/on'\n"
		"for i in 1 2; do nsenter -t $P -m python3 /tmp/x/map.py /etc/region true & M=$!; "
		"named; done | sed 's/etc@\\([0-9:]*\\) file \\1$/etc@FILE file FILE/'; kill $P");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "etc@FILE file FILE\netc@FILE file FILE\n");
	/* there, by a descriptor that a process of these mounts was given */
	said = tool_run(AS MAPS NAMED
		"{ unshare -m sh -c 'mount -t tmpfs none /etc; cp /tmp/x/train/region /etc; "
		"sleep 600 & echo $! >/tmp/x/stays; exec 7<>/etc/region nsenter -t '$$' -m "
		"python3 /tmp/x/map.py /proc/self/fd/7 true' & M=$!; named; kill $(cat "
		"/tmp/x/stays); } | sed 's/etc@\\([0-9:]*\\) file \\1$/etc@FILE file FILE/'");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "etc@FILE file FILE\n");
	/* and in a container, as its control group tells */
	said = tool_run(AS MAPS NAMED
		"unshare -m sh -c 'mount -t tmpfs none /etc; cp /tmp/x/train/region /etc; "
		"exec python3 /tmp/x/map.py /etc/region true' & M=$!; ready\n"
		"printf 0::/docker/%%064d/docker/%%064x 123 1 >/tmp/x/groups; "
		"mount --bind /tmp/x/groups /proc/$M/cgroup; named");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "etc@000000000000 000000000000:/etc/region\n");
}

/* The kernel's link is root's to follow, and the path is one of another root. */
static void a_user_sees_what_her_own_process_has_mapped(void **state)
{
	const struct said *said;

	users_begin_maps();
	said = tool_run(
		AS MAPS "as $A unshare -Urm sh -c \"mount -t tmpfs none /mnt; cp -r "
			"/tmp/x/train /mnt; python3 /tmp/x/map.py /mnt/train/region true\" & "
			"ready; as $A \"$VGPU\" list --all | grep -o '^train'; : "
			">/tmp/x/end; wait");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "train\n");
}

/* By a path that is longer than any that a call takes, and by mappings in parts. */
static void what_a_process_has_mapped_in_parts_or_far_below_is_seen(void **state)
{
	static const char *const changes[] = {"libc.mlock(p(0x10000), 4096)",
		"libc.mprotect(p(0), 4096, 0)", "libc.mprotect(p(0x20000), 4096, 7)",
		"libc.munmap(p(0), 4096)", "libc.munmap(p(len(m) - 4096 & ~4095), 4096)",
		"libc.madvise(p(0x30000), 4096, 10)",
		"libc.mremap(p(0), len(m), len(m) + 65536, 1)"};
	const struct said *said;

	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++) {
		users_begin_maps();
		said = tool_run(AS MAPS
			"sed -i '/^subprocess/i import ctypes; libc = ctypes.CDLL(None); "
			"libc.mremap.restype = ctypes.c_void_p; base = "
			"ctypes.addressof(ctypes.c_char.from_buffer(m)); "
			"p = lambda offset: ctypes.c_void_p(base + offset); %s' /tmp/x/map.py\n"
			"as $A sh -c 'python3 /tmp/x/map.py /tmp/x/train/region true' & look",
			changes[i]);
		assert_string_equal(said->err, "");
		assert_string_equal(said->out, "54321/train\n");
	}
	users_begin_maps();
	said = tool_run(
		AS MAPS "cat >/tmp/x/deep.py <<'END'\nimport os\nos.chdir('/tmp/x')\n"
			"for i in range(20): os.mkdir('d' * 250); os.chdir('d' * 250)\n"
			"os.rename('/tmp/x/train', 'train')\nEND\n"
			"as $A sh -c 'python3 /tmp/x/map.py /tmp/x/train/region true' & ready; "
			"as $A sh -c 'python3 /tmp/x/deep.py'; look");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "54321/train\n");
}

/* Who has mapped a region can write to it, protect it and break it, and his slice is told all the same. */
static void what_hides_a_mapped_region_is_told(void **state)
{
#define BREAK	     "m[MAGIC:MAGIC + 4] = b\"none\""
#define PROTECT(how) "libc.mprotect(p(0), len(m) + 4095 & ~4095, " how ")"
	static const char *const changes[] = {PROTECT("1"), PROTECT("0"), BREAK,
		BREAK "; " PROTECT("0"), "m[MAGIC + 8:MAGIC + 12] = b\"none\""};

	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++) {
		const struct said *said;

		users_begin_maps();
		said = tool_run(AS MAPS
			"sed -i '/^subprocess/i import ctypes; libc = ctypes.CDLL(None); base = "
			"ctypes.addressof(ctypes.c_char.from_buffer(m)); MAGIC = %zu; "
			"p = lambda offset: ctypes.c_void_p(base + offset); %s' /tmp/x/map.py\n"
			"as $A sh -c 'python3 /tmp/x/map.py /tmp/x/train/region true' & ready\n"
			"\"$VGPU\" list --all --prometheus 2>/dev/null | grep '^vgpu_slices'; look",
			offsetof(struct region_file, own.magic), changes[i]);
		assert_string_equal(said->err, "");
		assert_says(said->out, i < 2 ? "vgpu_slices_left_out 0\nvgpu_slices_broken 0\n"
					     : "vgpu_slices_left_out 1\nvgpu_slices_broken 1\n");
		assert_says(said->out,
			i < 2 ? "54321/train\n"
			      : "vgpu: 1 accounting file is broken, or of another version: "
				"/tmp/x/train/region; ");
	}
}

/* Where a container has its region nothing else can be, however long it is. */
static void a_containers_region_that_is_cut_or_longer_is_told(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct said *said;

		users_begin_maps();
		said = tool_run(AS MAPS
			"sed -i 's/^open.*ready.*/m[%zu:%zu] = b\"none\"; os.truncate(sys.argv[1], "
			"len(m) * %u + 4096)\\n&/' /tmp/x/map.py\n"
			"unshare -m sh -c 'mount -t tmpfs none /etc; mkdir /etc/vgpu; touch "
			"/etc/vgpu/region; mount --bind /tmp/x/train/region /etc/vgpu/region; "
			"exec python3 /tmp/x/map.py /etc/vgpu/region true' & look",
			offsetof(struct region_file, own.magic),
			offsetof(struct region_file, own.magic) + 4, i);
		assert_string_equal(said->err, "");
		assert_says(said->out, "vgpu: 1 accounting file is broken, or of another version: "
				       "/tmp/x/train/region; ");
	}
}

/* A monitor refuses metrics of which two are one. */
static void no_sample_is_written_twice(void **state)
{
	const struct said *said;
	struct region region;
	unsigned device;

	users_begin_maps();
	assert_int_equal(region_open("/tmp/x/train/region", &region), 0);
	assert_int_equal(
		region_device(&region, "GPU-00000000-1111-2222-3333-444444444444", &device), 0);
	region_close(&region);
	said = tool_run(AS MAPS "cat >>/tmp/x/two.py <<'END'\nimport mmap, subprocess, time, os\n"
				"def mapped():\n    f = open('/tmp/x/train/region', 'r+b'); return "
				"mmap.mmap(f.fileno(), %zu)\n"
				"m = mapped()\n"
				"subprocess.check_call('cp /tmp/x/train/region /tmp/x/copy; mount "
				"-t tmpfs none /tmp/x/train; cp /tmp/x/copy /tmp/x/train/region', "
				"shell=True)\n"
				"n = mapped()\nopen('/tmp/x/ready', 'w')\n"
				"while not os.path.exists('/tmp/x/end'): time.sleep(0.01)\nEND\n"
				"as $A unshare -Urm sh -c 'python3 /tmp/x/two.py' & ready\n"
				"\"$VGPU\" list --all --prometheus >/tmp/x/metrics; grep -c "
				"^vgpu_slice_processes /tmp/x/metrics\n"
				"grep -v '^#' /tmp/x/metrics | sed 's/ [^ ]*$//' | sort | uniq -d; "
				": >/tmp/x/end; wait",
		sizeof(struct region_file));
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "2\n");
}

/* Root opens what is mapped and nothing that has taken its path. */
static void what_is_mounted_over_a_mapped_path_is_not_opened(void **state)
{
	const struct said *said;

	users_begin_maps();
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

	users_begin_maps();
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

	users_begin_maps();
	said = tool_run(
		BY MAPS "setpriv --reuid 54321 --regid 54321 --groups $(seq -s , 100001 102000) "
			"-- sh -c 'python3 /tmp/x/map.py /tmp/x/train/region true' & look");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "54321/train\n");
}

/* As a program in a container without root: of a user that is one of Alice's subordinate ones. */
#define SUBORDINATE 100999

static int map(void *region)
{
	int fd = open(region, O_RDWR);
	void *at =
		mmap(NULL, sizeof(struct region_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? -1 : 0;
}

static int begin_container(void *region)
{
	return map(region) < 0 || unshare(CLONE_NEWUSER) < 0 ? -1 : 0;
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

	users_begin_maps();
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
		assert_int_equal(chown(path, users[i], users[i]), 0);
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

	users_begin_maps();
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

/* A file that others may write to is shown as its owner's, whoever has mapped it first. */
static void who_maps_first_does_not_own(void **state)
{
	static char path[] = "/tmp/x/train/region";
	static const struct user_process maps = {.begin = map, .context = path};
	const struct said *said;
	pid_t first, owner;

	users_begin_maps();
	tool_run("chmod 0666 /tmp/x/train/region");
	for (int i = 0; i < 2; i++) {
		first = users_start(i ? ALICE : BOB, &maps, NULL);
		owner = users_start(i ? BOB : ALICE, &maps, NULL);
		said = tool_run("\"$VGPU\" list --all | grep -o '^[0-9]*/train'");
		assert_string_equal(said->out, "54321/train\n");
		users_end(first);
		users_end(owner);
	}
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_a_process_has_mapped_cannot_be_hidden, users_clear),
		cmocka_unit_test_setup(a_name_outlives_the_processes_that_have_it, users_clear),
		cmocka_unit_test_setup(a_user_sees_what_her_own_process_has_mapped, users_clear),
		cmocka_unit_test_setup(
			what_is_mounted_over_a_mapped_path_is_not_opened, users_clear),
		cmocka_unit_test_setup(
			a_mapping_on_an_overlay_of_a_users_is_told_and_not_opened, users_clear),
		cmocka_unit_test_setup(a_process_with_many_groups_is_seen, users_clear),
		cmocka_unit_test_setup(
			what_a_process_has_mapped_in_parts_or_far_below_is_seen, users_clear),
		cmocka_unit_test_setup(what_hides_a_mapped_region_is_told, users_clear),
		cmocka_unit_test_setup(
			a_containers_region_that_is_cut_or_longer_is_told, users_clear),
		cmocka_unit_test_setup(no_sample_is_written_twice, users_clear),
		cmocka_unit_test_setup(
			a_process_of_a_users_container_is_shown_as_hers, users_clear),
		cmocka_unit_test_setup(
			who_maps_many_regions_keeps_root_waiting_no_longer, users_clear),
		cmocka_unit_test_setup(who_maps_first_does_not_own, users_clear),
	};

	return cmocka_run_group_tests_name("cli users mapped", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

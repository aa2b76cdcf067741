/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu as root beside users who mean harm (tests/cli/users.h): what stands in a slice's folder. */
#include <fcntl.h>
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
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "region/layout.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/cli/tool.h"
#include "tests/cli/users.h"

/* A writer waits at each FIFO until a reader opens it: after root has looked, all wait still. */
static void nothing_but_regular_files_is_opened(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A one; slice $A two; slice $A three; slice $A four; cd /tmp/vgpu-$A\n"
		   "mkfifo pipe; rm one/share; mkfifo one/share; rm two/lock; mkfifo two/lock; "
		   "mkfifo three/region; ln -s ../pipe four/region\n"
		   "chown -hR $A *; touched=; for f in pipe one/share two/lock three/region; do "
		   "( echo >$f; echo $f >>\"$HERE/touched\" ) & pids=\"$pids $!\"; done\n"
		   "for p in $pids; do by \"grep -q ^State:.S /proc/$p/status\"; done\n"
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

static int take_locks(void *file)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(open(file, O_RDWR), F_SETLK, &all);
}

static int take_lease(void *file)
{
	signal(SIGIO, SIG_IGN);
	return fcntl(open(file, O_RDONLY), F_SETLEASE, F_WRLCK);
}

/* Alice's process, which holds all locks of the slice's file, or a lease on it; 0 where there are no leases here. */
static pid_t hold(const char *file, bool is_lease)
{
	char path[64];
	const struct user_process holder = {
		.begin = is_lease ? take_lease : take_locks, .context = path};
	int outcome;
	pid_t pid;

	snprintf(path, sizeof(path), "/tmp/vgpu-54321/web/%s", file);
	pid = users_start(ALICE, &holder, &outcome);
	if (outcome == 0)
		return pid;
	users_end(pid);
	return 0;
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
	users_end(pid);
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
	users_end(pid);
	pid = hold("share", true);
	snprintf(expected, sizeof(expected), "process %d has a lease on its share file", (int)pid);
	said = tool_run("\"$VGPU\" set 54321/web --memory 3g");
	assert_int_equal(said->status, 1);
	assert_says(said->err, expected);
	users_end(pid);
	said = tool_run(WEB "\"$VGPU\" set 54321/web --memory 3g >/dev/null && grep device share");
	assert_says(said->out, "memory 3221225472\n");
}

/* A slice that is not shown is counted, with the reason, by all that show slices. */
#define SHOW_ALL \
	"for c in 'list --all' 'top --once' doctor; do \"$VGPU\" $c 2>&1 | grep ^vgpu:; done"

static void what_root_does_not_believe_is_left_out_with_a_word(void **state)
{
	const struct said *said =
		tool_run(AS "slice $A web; as $A chmod 0777 /tmp/vgpu-$A\n" SHOW_ALL);
#define OPEN(path)                                                                  \
	"vgpu: 1 folder of slices was not looked at: others may write there; " path \
	"; `chmod go-w`, by user 54321, makes it right\n"
#define OPEN_ROOT  OPEN("/tmp/vgpu-54321 has mode 0777")
#define OPEN_SLICE OPEN("/tmp/vgpu-54321/web has mode 0770")

	assert_string_equal(said->out, OPEN_ROOT OPEN_ROOT OPEN_ROOT);
	said = tool_run(
		AS "as $A chmod 0700 /tmp/vgpu-$A; as $A chmod 0770 /tmp/vgpu-$A/web\n" SHOW_ALL);
	assert_string_equal(said->out, OPEN_SLICE OPEN_SLICE OPEN_SLICE);
	said = tool_run(AS "slice $A b; as $A chmod 0770 /tmp/vgpu-$A/b; \"$VGPU\" list");
	assert_says(said->err, "vgpu: 2 folders of slices were not looked at: others may write "
			       "there; /tmp/vgpu-54321/");
	assert_says(said->err, ", the first, has mode 0770; ");
}

/* A process of Alice's with a region that it has mapped alone, or that nobody has, and a lease on that. */
static int map_and_lease(void *path)
{
	int fd = open(path, O_RDWR);
	void *at =
		mmap(NULL, sizeof(struct region_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	signal(SIGIO, SIG_IGN);
	return at == MAP_FAILED ? -1 : fcntl(fd, F_SETLEASE, F_WRLCK);
}

static void a_slice_with_a_lease_on_its_region_is_left_out_with_a_word(void **state)
{
	static char path[] = "/tmp/vgpu-54321/web/region", mapped[] = "/tmp/lease/region";
	static const struct user_process holder = {.begin = take_lease, .context = path},
					 mapper = {.begin = map_and_lease, .context = mapped};
	const struct said *said;
	char expected[200];
	int outcome;
	pid_t pid;

	tool_run(AS
		"slice $A web; as $A truncate -s %zu /tmp/vgpu-$A/web/region; mkdir /tmp/lease; "
		"cp /tmp/vgpu-$A/web/region /tmp/lease; chown -R $A /tmp/lease",
		sizeof(struct region_file));
	pid = users_start(ALICE, &holder, &outcome);
	if (outcome != 0) {
		users_end(pid);
		skip();
	}
	snprintf(expected, sizeof(expected),
		"vgpu: 1 slice was left out: process %d has a lease on %s; it is to be ended "
		"first\n",
		(int)pid, path);
	for (int i = 0; i < 2; i++) {
		said = tool_run("\"$VGPU\" %s", i ? "list --all" : "top --once");
		assert_string_equal(said->err, expected);
	}
	assert_string_equal(tool_run("\"$VGPU\" doctor")->err, expected);
	users_end(pid);
	tool_run("rm -r /tmp/vgpu-54321");
	pid = users_start(ALICE, &mapper, &outcome);
	assert_int_equal(outcome, 0);
	snprintf(expected, sizeof(expected),
		"vgpu: 1 slice was left out: process %d has a lease on %s; it is to be ended "
		"first\n",
		(int)pid, mapped);
	for (int i = 0; i < 2; i++) {
		said = tool_run("\"$VGPU\" %s", i ? "list" : "top --once");
		assert_string_equal(said->err, expected);
	}
	assert_string_equal(tool_run("\"$VGPU\" doctor")->err, expected);
	users_end(pid);
	tool_run("rm -r /tmp/lease");
}

/* A share that cannot be read would hide the quota, and that the slice is suspended. */
static void a_slice_whose_share_cannot_be_read_is_left_out_with_a_word(void **state)
{
	const struct said *said =
		tool_run(AS "slice $A web; \"$VGPU\" suspend $A/web; \"$VGPU\" list --all | "
			    "grep -c suspended");
	pid_t pid = hold("share", true);
	char one[200], expected[600];

	assert_string_equal(said->out, "1\n");
	if (!pid)
		skip();
	snprintf(one, sizeof(one),
		"vgpu: 1 slice was left out: process %d has a lease on /tmp/vgpu-54321/web/share; "
		"it "
		"is to be ended first\n",
		(int)pid);
	snprintf(expected, sizeof(expected), "%s%s%s", one, one, one);
	said = tool_run(SHOW_ALL);
	users_end(pid);
	assert_string_equal(said->out, expected);
#define UNREAD                                                                                   \
	"vgpu: 1 slice was left out: /tmp/vgpu-54321/web/share cannot be read as a share file, " \
	"so nobody knows its limits\n"
	tool_run(AS WEB "rm share; as $A sh -c 'echo nonsense >share'");
	assert_string_equal(tool_run(SHOW_ALL)->out, UNREAD UNREAD UNREAD);
}

/* One on its lock says nothing of the slice. */
static void a_slice_with_a_lease_on_its_lock_is_shown(void **state)
{
	const struct said *said = tool_run(AS "slice $A web");
	pid_t pid = hold("lock", true);

	if (!pid)
		skip();
	said = tool_run(AS "setpriv --reuid $A --regid $A --clear-groups -- env "
			   "VGPU_SHARE=/tmp/vgpu-$A/web/share sleep 600 >/dev/null 2>&1 & runs $! "
			   "sleep; \"$VGPU\" "
			   "list | grep -o 54321/web; kill $!");
	users_end(pid);
	assert_string_equal(said->out, "54321/web\n");
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

/* A mount of the file alone keeps the file that it was, whatever takes its name. */
static void a_share_that_is_mounted_alone_is_noted(void **state)
{
	const struct said *said =
		tool_run(BY "mkdir -p /tmp/grant; printf 'vgpu-share 1\ndevice * memory 1g\nend\n' "
			    ">/tmp/grant/share; "
			    ": >/tmp/alone; mount --bind /tmp/grant/share /tmp/alone\n"
			    "for s in /tmp/alone /tmp/grant/share; do VGPU_SHARE=$s "
			    "LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" "
			    "sleep 600 & by \"grep -qs libvgpu /proc/$!/maps\"; "
			    "\"$VGPU\" doctor $!; kill $!; done; umount /tmp/alone");

	assert_says(said->out, "/tmp/alone is mounted as a single file");
	assert_null(strstr(said->out, "/tmp/grant/share is mounted"));
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
		"VGPU_SHARE=$path chroot /tmp/root sleep 600 & runs $! sleep; "
		"\"$VGPU\" doctor $! | grep 'limits\\|share file'; kill $!; done\n"
		"umount /tmp/root/mnt /tmp/root; rm -r /tmp/root /tmp/ours");

	if (said->status == 77)
		skip();
	assert_null(strstr(said->out, "3G"));
	assert_says(said->out, "share file /mnt/out, line 0: No such file");
	assert_says(said->out, "memory 2G from /mnt/in/share");
	assert_says(said->out, "memory 2G from /../../mnt/own/share");
}

/* As in a container whose root is read-only. */
static void a_region_that_is_mounted_alone_is_where_it_is(void **state)
{
	const struct said *said = tool_run(
		AS "mkdir -p /tmp/o; : >/tmp/own; : >/tmp/o/region; mount --bind /tmp/o /tmp/o; "
		   "mount --bind /tmp/own /tmp/o/region; mount -o remount,bind,ro /tmp/o\n"
		   "for f in region other; do CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/o/$f "
		   "LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" "
		   "sleep 600 >/dev/null & runs $! sleep; \"$VGPU\" doctor $! | grep -o 'its "
		   "region.*Read-only'; "
		   "kill $!; done; umount /tmp/o/region /tmp/o; rm -r /tmp/o /tmp/own");

	assert_string_equal(said->out,
		"its region /tmp/o/other on tmpfs cannot be used, so all memory is "
		"refused: Read-only\n");
}

/* Of one of the machine's own: a file's device there may be that of no mount. */
static void a_share_on_an_overlay_of_roots_is_read(void **state)
{
	const struct said *said = tool_run(AS
		"mkdir /tmp/l /tmp/u /tmp/o; mount -t tmpfs none /tmp/u; mkdir /tmp/u/u /tmp/u/w; "
		"mount -t overlay none -o "
		"xino=off,lowerdir=/tmp/l,upperdir=/tmp/u/u,workdir=/tmp/u/w /tmp/o || exit 77\n"
		"printf 'vgpu-share 1\\ndevice * memory 2g\\nend\\n' >/tmp/l/share; "
		"VGPU_SHARE=/tmp/o/share sleep 600 "
		">/dev/null & runs $! sleep; \"$VGPU\" doctor $!; kill $!; "
		"umount /tmp/o /tmp/u; rm -r /tmp/l /tmp/u /tmp/o");

	if (said->status == 77)
		skip();
	assert_says(said->out, "memory 2G from /tmp/o/share");
}

static void exchange(void *context)
{
	syscall(SYS_renameat2, AT_FDCWD, "/tmp/vgpu-54321/web", AT_FDCWD, "/tmp/vgpu-54321/link",
		2 /* RENAME_EXCHANGE */);
}

/* Alice's slice is a link to Bob's at some moments, also between the look for it and the look at it. */
static void a_link_that_comes_and_goes_is_not_followed(void **state)
{
	static const struct user_process quick = {.again = exchange};
	const struct said *said;
	pid_t pid;

	tool_run(AS
		"slice $A web; slice $B secret; as $A ln -s /tmp/vgpu-$B/secret /tmp/vgpu-$A/link; "
		"sed -i 's/memory .*/memory 7g/' /tmp/vgpu-$B/secret/share");
	pid = users_start(ALICE, &quick, NULL);
	said = tool_run("for i in 1 2 3 4 5 6 7 8 9 10; do \"$VGPU\" list --all 2>/dev/null; done");
	users_end(pid);
	for (const char *at = said->out; (at = strstr(at, "54321/")); at++)
		assert_null(memmem(at, strcspn(at, "\n"), " 7G ", 4));
	assert_non_null(strstr(said->out, "54322/secret"));
}

/* Alice has a link there to a file of root's that all may write to. */
static void a_share_that_root_writes_belongs_to_the_folders_owner(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; s=/tmp/vgpu-$A/web/share; cp $s /tmp/roots; "
		   "chmod 0777 /tmp/roots; ln -f /tmp/roots $s; stat -c '%%u %%a' $s; "
		   "\"$VGPU\" set $A/web --memory 2g >/dev/null; stat -c '%%u %%g %%a' $s; "
		   "stat -c '%%u %%a' /tmp/roots; rm /tmp/roots");

	assert_string_equal(said->out, "0 777\n54321 54321 755\n0 777\n");
}

/* One user, who has been here by ssh and by su. */
static void two_slices_of_one_user_are_told_apart_by_their_folder(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; mkdir -p /run/user/$A; chown $A:$A /run/user/$A; "
		   "chmod 700 /run/user/$A; as $A cp -r /tmp/vgpu-$A /run/user/$A/vgpu; "
		   "as $A sed -i s,/tmp/vgpu-$A,/run/user/$A/vgpu, "
		   "/run/user/$A/vgpu/web/share; \"$VGPU\" set $A/web --memory 2g; "
		   "VGPU_STATE=/tmp/vgpu-$A \"$VGPU\" set web --memory 3g >/dev/null; "
		   "grep -l 3221225472 /tmp/vgpu-$A/web/share /run/user/$A/vgpu/web/share");

	assert_says(said->err, "there are several slices '54321/web'");
	assert_says(said->err, "; choose the folder of slices by VGPU_STATE=FOLDER\n");
	assert_null(strstr(said->err, "USER/NAME"));
	assert_string_equal(said->out, "/tmp/vgpu-54321/web/share\n");
}

static void prepare_makes_roots_folder_right(void **state)
{
	const struct said *said = tool_run(
		AS "mkdir -p /run/vgpu; chmod 0777 /run/vgpu; \"$VGPU\" prepare 2>/dev/null; "
		   "stat -c '%%u %%a' /run/vgpu; \"$VGPU\" doctor --machine | grep -c '0777'");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0 700\n0\n");
}

/* Anybody can take the names of all numbers. */
static void prepare_makes_few_folders_of_nobodys(void **state)
{
	const struct said *said =
		tool_run(AS "as $A sh -c 'cd /tmp; : >.s; i=0; while [ $i -lt 200 ]; do ln .s "
			    "vgpu-$((4000000000 + i)); i=$((i + 1)); done; ln .s vgpu-1'; "
			    "\"$VGPU\" prepare 2>&1 | sed '/note: no device/d' >&2; find /tmp "
			    "-maxdepth 1 -name 'vgpu-4*' -type d | wc -l; "
			    "stat -c %%u /tmp/vgpu-1; rm -rf /tmp/.s /tmp/vgpu-[0-9]* /tmp/.was-*");

	assert_string_equal(said->err, "vgpu: 136 names /tmp/vgpu-UID of users whom this machine "
				       "does not know stay taken: "
				       "64 are given back at a time\n");
	assert_string_equal(said->out, "64\n1\n");
}

/* Of two such names one sample of Prometheus would be made, twice. */
static void no_two_samples_have_the_same_labels(void **state)
{
	const struct said *said;
	struct region region;
	unsigned device;

	users_begin_maps();
	assert_int_equal(region_open("/tmp/x/train/region", &region), 0);
	assert_int_equal(region_device(&region, "GPU-1", &device), 0);
	region_close(&region);
	said = tool_run(AS MAPS
		"slice $A web; for n in $(printf 'x\\376') $(printf 'x\\377'); do "
		"as $A cp -r /tmp/vgpu-$A/web /tmp/vgpu-$A/$n; as $A cp /tmp/x/train/region "
		"/tmp/x/$n; as $A sh -c 'python3 /tmp/x/map.py \"$1\" true' - /tmp/x/$n & ready; "
		"rm "
		"/tmp/x/ready; done; "
		"\"$VGPU\" list --all --prometheus >/tmp/samples; \"$VGPU\" top --once "
		">/dev/null; \"$VGPU\" list --all | grep -c '^54321/'; : >/tmp/x/end; wait; "
		"grep -v '^#' /tmp/samples | sed 's/ [^ ]*$//' | sort | uniq -d; rm "
		"/tmp/samples");
#define MISNAMED \
	"vgpu: 2 slices were left out, as no slice can have their names, in /tmp/vgpu-54321\n"
	assert_string_equal(said->err, MISNAMED MISNAMED MISNAMED);
	assert_string_equal(said->out, "3\n");
}

/* Root's own programs meet there, and it is for all to write to. */
static struct region make_roots_region(const char *path)
{
	struct region region;
	unsigned slot;

	assert_int_equal(region_open(path, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	return region;
}

#define STRANGERS(path)                                                 \
	"vgpu: 1 accounting file was left out as another user's: " path \
	"; its owner, or root, has "                                    \
	"to remove it\n"
#define SHOW_NAMES                                                                           \
	"for c in 'list --all' 'top --once' doctor; do \"$VGPU\" $c 2>&1 | grep -o '^vgpu: " \
	".*file.*\\|"                                                                        \
	"^[0-9]*/*cudevshr\\|^[0-9]*/*mine' | sort -u; done"

static void a_link_takes_no_slice_out_of_the_list(void **state)
{
	struct region region = make_roots_region("/tmp/cudevshr.cache");
	const struct said *said = tool_run(
		AS "slice $A mine; rm -f /tmp/vgpu-$A/mine/region; as $A ln /tmp/cudevshr.cache "
		   "/tmp/vgpu-$A/mine/region && " SHOW_NAMES);
#define LEFT STRANGERS("/tmp/vgpu-54321/mine/region")

	assert_string_equal(said->out, "cudevshr\n" LEFT "cudevshr\n" LEFT LEFT);
	region_close(&region);
	/* Of two folders of hers with one region both are slices. */
	said = tool_run(AS "slice $A a; slice $A b; rm /tmp/vgpu-$A/mine/region; "
			   "as $A cp /tmp/cudevshr.cache /tmp/vgpu-$A/a/region; "
			   "as $A ln /tmp/vgpu-$A/a/region /tmp/vgpu-$A/b/region; "
			   "rm /tmp/cudevshr.cache; \"$VGPU\" list --all --json | grep '\"name\"'");
	assert_says(said->out, "\"name\": \"a\"");
	assert_says(said->out, "\"name\": \"b\"");
}

static void a_strangers_file_is_not_roots_own(void **state)
{
	struct region region = make_roots_region("/tmp/cudevshr.cache.0");
	const struct said *said;

	region_close(&region);
	said = tool_run(
		AS "as $A touch /tmp/cudevshr.cache; chown $A /tmp/cudevshr.cache.0; " SHOW_NAMES);
#define NOT_OWN STRANGERS("/tmp/cudevshr.cache.0")

	assert_string_equal(said->out, NOT_OWN NOT_OWN NOT_OWN);
	tool_run("rm /tmp/cudevshr.cache*");
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_but_regular_files_is_opened, users_clear),
		cmocka_unit_test_setup(root_makes_nothing_beside_a_users_slice, users_clear),
		cmocka_unit_test_setup(no_lock_of_the_owner_keeps_root_out, users_clear),
		cmocka_unit_test_setup(a_lease_of_the_owner_is_named, users_clear),
		cmocka_unit_test_setup(what_root_does_not_believe_is_named, users_clear),
		cmocka_unit_test_setup(
			what_root_does_not_believe_is_left_out_with_a_word, users_clear),
		cmocka_unit_test_setup(
			a_slice_with_a_lease_on_its_region_is_left_out_with_a_word, users_clear),
		cmocka_unit_test_setup(a_slice_with_a_lease_on_its_lock_is_shown, users_clear),
		cmocka_unit_test_setup(
			a_slice_whose_share_cannot_be_read_is_left_out_with_a_word, users_clear),
		cmocka_unit_test_setup(a_share_that_is_mounted_alone_is_noted, users_clear),
		cmocka_unit_test_setup(
			a_link_in_a_root_of_its_own_leads_to_nothing_of_ours, users_clear),
		cmocka_unit_test_setup(a_link_that_comes_and_goes_is_not_followed, users_clear),
		cmocka_unit_test_setup(a_share_on_an_overlay_of_roots_is_read, users_clear),
		cmocka_unit_test_setup(a_region_that_is_mounted_alone_is_where_it_is, users_clear),
		cmocka_unit_test_setup(a_link_takes_no_slice_out_of_the_list, users_clear),
		cmocka_unit_test_setup(a_strangers_file_is_not_roots_own, users_clear),
		cmocka_unit_test_setup(no_two_samples_have_the_same_labels, users_clear),
		cmocka_unit_test_setup(
			a_share_that_root_writes_belongs_to_the_folders_owner, users_clear),
		cmocka_unit_test_setup(
			two_slices_of_one_user_are_told_apart_by_their_folder, users_clear),
		cmocka_unit_test_setup(prepare_makes_roots_folder_right, users_clear),
		cmocka_unit_test_setup(prepare_makes_few_folders_of_nobodys, users_clear),
	};

	return cmocka_run_group_tests_name("cli users files", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

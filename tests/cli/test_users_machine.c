/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor --machine beside users who mean harm (tests/cli/users.h): what breaks the model of docs/machine.md is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli/tool.h"
#include "tests/cli/users.h"

/* Where a slice has no lock any more, its owner's vgpu makes one beside the slices. */
static void a_lock_beside_the_slices_is_no_slice(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; rm /tmp/vgpu-$A/web/lock; as $A \"$VGPU\" set web --memory 2g "
		   "|| exit 9; \"$VGPU\" doctor --machine | grep -A 1 /tmp/vgpu-$A/");

	assert_string_equal(said->err, "");
	assert_says(
		said->out, "/tmp/vgpu-54321/.lock  54321 0600  a lock of slices that have none\n/");
	said = tool_run(AS "cd /tmp/vgpu-$A; as $A chmod 0666 .lock; \"$VGPU\" doctor --machine; "
			   "rm .lock; as $A ln -s web/share .lock; \"$VGPU\" doctor --machine; "
			   "rm .lock; as $A mkdir .lock; \"$VGPU\" doctor --machine");
	assert_says(said->out, "/.lock  54321 0666  a lock of slices that have none\n    others "
			       "may write to it");
	assert_says(said->out, "/.lock  54321 0777  a lock of slices that have none\n    it is a "
			       "link");
	assert_says(said->out, "a lock of slices that have none\n    it is no regular file");
}

/*
 * A machine on which nothing is wrong: vgpu and the library as a package has them, and the kernel careful. Says what doctor's last
 * line is when something has been done to it.
 */
#define CLEAN                                                                                  \
	AS "unset VGPU_TURNS VGPU_LIBDIR; umask 022; "                                         \
	   "rm -rf /run/inst /dev/shm/vgpu-turns; mkdir -p /run/inst/bin /run/inst/lib/vgpu ;" \
	   "chmod 755 /run; "                                                                  \
	   "cp \"$VGPU\" /run/inst/bin/vgpu; : >/run/inst/lib/vgpu/libvgpu.so; "               \
	   ": >/run/inst/lib/vgpu/ld.so.preload; echo 1 >/run/one; "                           \
	   "for f in symlinks hardlinks; do mount --bind /run/one /proc/sys/fs/protected_$f "  \
	   "|| exit 77; done; V=/run/inst/bin/vgpu; $V prepare 2>/dev/null; slice $A web; "    \
	   "d() { $V doctor --machine >/tmp/said; echo \"$1 $? $(tail -n 1 /tmp/said | "       \
	   "cut -d. -f1)\"; }\n"
#define UNCLEAN "umount /proc/sys/fs/protected_symlinks /proc/sys/fs/protected_hardlinks\n"

static void what_is_believed_is_judged_with_what_is_above(void **state)
{
	const struct said *said = tool_run(CLEAN
		"d clean\n"
		"chmod 0777 /run/inst/lib/vgpu; d folder; grep -A 1 '^/run/inst/lib/vgpu ' "
		"/tmp/said; "
		"chmod 0755 /run/inst/lib/vgpu\n"
		"chown $A /run/inst; d above; chown 0 /run/inst\n"
		"chmod 0777 $V; d program; chmod 0755 $V\n"
		"chmod 0666 /run/inst/lib/vgpu/ld.so.preload; d list; "
		"chmod 0640 /run/inst/lib/vgpu/ld.so.preload; d 'closed list'; "
		"grep -A 1 'ld.so.preload ' /tmp/said; "
		"chmod 0700 /run/inst/lib/vgpu/libvgpu.so; d 'closed library'; "
		"chmod 0755 /run/inst/lib/vgpu/libvgpu.so; "
		"rm /run/inst/lib/vgpu/ld.so.preload; d 'no list'\n"
		"mv /run/inst/lib/vgpu/libvgpu.so /run/l; d 'no library'; "
		"mv /run/l /run/inst/lib/vgpu/libvgpu.so\n"
		"for f in /tmp /dev/shm /run; do mode=$(stat -c %%a $f); chmod 0777 $f; d $f; "
		"chmod $mode $f; done\n"
		"as $A mkdir /tmp/al; mkdir -m 1777 /tmp/al/turns; chmod 1777 /tmp/al/turns; "
		"VGPU_TURNS=/tmp/al/turns; export VGPU_TURNS; d turns; unset VGPU_TURNS; "
		"ln -s /tmp/al/turns /run/link; VGPU_LIBDIR=/run/link d link; rm -r /tmp/al\n"
		"d clean; " UNCLEAN);

	if (said->status == 77)
		skip();
	assert_string_equal(said->err, "");
	assert_string_equal(said->out,
		"clean 0 Nothing is wrong\n"
		"folder 1 1 wrong\n"
		"/run/inst/lib/vgpu  root 0777  above what is believed\n"
		"    others may write to it (mode 0777)\n"
		"above 1 1 wrong\n"
		"program 1 1 wrong\n"
		"list 1 1 wrong\n"
		"closed list 1 1 wrong\n"
		"/run/inst/lib/vgpu/ld.so.preload  root 0640  what preloads the library in "
		"containers\n"
		"    not everybody may read it (mode 0640), right is: chmod a+r\n"
		"closed library 1 2 wrong\n"
		"no list 0 Nothing is wrong\n"
		"no library 1 1 wrong\n"
		"/tmp 1 1 wrong\n"
		"/dev/shm 1 1 wrong\n"
		"/run 1 1 wrong\n"
		"turns 1 1 wrong\n"
		"link 1 2 wrong\n"
		"clean 0 Nothing is wrong\n");
}

static void the_folder_of_the_operators_share_is_judged(void **state)
{
	const struct said *said = tool_run(CLEAN
		"mkdir -p /run/etc/vgpu; cp /etc/passwd /etc/group /run/etc; "
		"mount --bind /run/etc /etc\n"
		"d clean; chmod 0777 /etc/vgpu; d open; chmod 0755 /etc/vgpu; chown $A /etc/vgpu; "
		"d hers; chown 0 /etc/vgpu; : >/etc/vgpu/share; d share; "
		"chmod 0640 /etc/vgpu/share; d closed; umount /etc; " UNCLEAN);

	if (said->status == 77)
		skip();
	assert_string_equal(said->out, "clean 0 Nothing is wrong\nopen 1 1 wrong\nhers 1 1 wrong\n"
				       "share 0 Nothing is wrong\nclosed 1 1 wrong\n");
}

static void all_files_of_a_slice_are_judged(void **state)
{
	const struct said *said = tool_run(CLEAN
		"cd /tmp/vgpu-$A/web; as $A touch evicted sim; d files; as $A rm evicted sim\n"
		"as $A ln -s /etc/passwd evicted; d link; as $A rm evicted; as $A mkfifo sim; d "
		"FIFO; "
		"as $A rm sim; d clean; " UNCLEAN);

	if (said->status == 77)
		skip();
	assert_string_equal(said->out, "files 0 Nothing is wrong\nlink 1 1 wrong\nFIFO 1 1 wrong\n"
				       "clean 0 Nothing is wrong\n");
}

static void the_region_where_none_is_named_is_judged(void **state)
{
	const struct said *said = tool_run(CLEAN
		"cd /tmp; as $A sh -c 'umask 077; : >cudevshr.cache; : >cudevshr.cache.54321'; "
		"d hers; as $A touch cudevshr.cache.$B; d his; grep -A 1 cache.$B /tmp/said; "
		"rm cudevshr.cache.$B; as $A ln -s x cudevshr.cache.$B; d link; rm "
		"cudevshr.cache*; "
		": >cudevshr.cache; chmod 666 cudevshr.cache; d roots; rm "
		"cudevshr.cache; " UNCLEAN);

	if (said->status == 77)
		skip();
	assert_string_equal(said->out,
		"hers 0 Nothing is wrong\n"
		"his 1 1 wrong\n"
		"/tmp/cudevshr.cache.54322  54321 0644  the region of processes that name none\n"
		"    it belongs to 54321 and not to 54322\n"
		"link 1 1 wrong\n"
		"roots 0 Nothing is wrong\n");
}

/* What a user may not look at may be wrong. */
static void what_could_not_be_looked_at_is_said(void **state)
{
	const struct said *said = tool_run(CLEAN
		"mkdir -p /run/vgpu/x /run/user/$A /run/user/$B/vgpu; chmod 777 /run/vgpu/x; chown "
		"$A "
		"/run/user/$A; chown -R $B /run/user/$B; chmod 700 /run/user/*; d root\n"
		"chmod 755 /run/vgpu/x; d root\n"
		"d() { as $A $V doctor --machine; echo $?; }; d; chmod 755 /run/vgpu; "
		"chmod 700 /run/vgpu/x; rm -r /run/user; as $A chmod -R go+rX /tmp/vgpu-$A; d | "
		"tail -n 2; "
		"as $A $V doctor --machine --json | grep -c '\"not_looked_at\": \"Permission'; "
		"chmod 755 /run/vgpu/x; d | tail -n 2; " UNCLEAN);

	if (said->status == 77)
		skip();
	assert_string_equal(said->err, "");
	assert_says(said->out, "root 1 1 wrong\nroot 0 Nothing is wrong\n");
	assert_says(said->out, "/run/vgpu  root 0700  slices: not looked at: Permission denied\n");
	assert_says(said->out, "/run/user/54322/vgpu  slices: not looked at: Permission denied\n");
	assert_says(said->out, "Nothing wrong was seen, but 2 places could not be looked at: root "
			       "can.\n0\n");
	assert_says(said->out, "Nothing wrong was seen, but 1 place could not be looked at: root "
			       "can.\n0\n1\nNothing is wrong.\n0\n");
}

/* A user has any number of names beside it, made before it and after it: a folder lists them in an order of its own. */
static void what_is_wrong_of_roots_is_not_hidden_among_others(void **state)
{
	const struct said *said = tool_run(CLEAN
		"t=/dev/shm/vgpu-turns; fill() { as $A sh -c \"cd $t; seq -f $1%%.0f 100000 $2 | "
		"xargs mkdir\"; }; fill a 104200; for i in $(seq 40); do mkdir $t/GPU-$i; "
		"chmod 0755 $t/GPU-$i; done; fill b 104200; d turns; "
		"grep -c '/GPU-[0-9]*  root 0755' /tmp/said; grep -A 1 ' more ' /tmp/said; "
		"rm -r $t; " UNCLEAN);

	if (said->status == 77)
		skip();
	assert_string_equal(said->err, "");
	assert_says(said->out, "turns 1 8442 wrong; `vgpu prepare`");
	assert_says(said->out, "\n40\n");
	assert_says(said->out,
		"/dev/shm/vgpu-turns  4064 more  not listed\n    they are wrong, too\n"
		"/dev/shm/vgpu-turns  4306 more  not looked at\n");
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_lock_beside_the_slices_is_no_slice, users_clear),
		cmocka_unit_test_setup(what_is_believed_is_judged_with_what_is_above, users_clear),
		cmocka_unit_test_setup(the_folder_of_the_operators_share_is_judged, users_clear),
		cmocka_unit_test_setup(all_files_of_a_slice_are_judged, users_clear),
		cmocka_unit_test_setup(the_region_where_none_is_named_is_judged, users_clear),
		cmocka_unit_test_setup(what_could_not_be_looked_at_is_said, users_clear),
		cmocka_unit_test_setup(
			what_is_wrong_of_roots_is_not_hidden_among_others, users_clear),
	};

	return cmocka_run_group_tests_name("cli users machine", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

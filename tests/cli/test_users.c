/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu as root beside users who mean harm (tests/cli/users.h): whose a slice, a name and a folder are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/cli/tool.h"
#include "tests/cli/users.h"

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

/* Each of a user's subordinate numbers may have folders. */
static void numbers_of_nobody_have_one_account_together(void **state)
{
	const struct said *said =
		tool_run(AS "slice $A web; slice 100000 s1; cd /tmp/vgpu-100000; as 100000 sh -c "
			    "'for i in $(seq 2 200); do cp -r s1 s$i; done'\n"
			    "cp -a /tmp/vgpu-100000 /tmp/vgpu-100001; chown -R 100001:100001 "
			    "/tmp/vgpu-100001; cp -a /tmp/vgpu-100001 /tmp/vgpu-100002; chown -R "
			    "100002:100002 /tmp/vgpu-100002\n"
			    "\"$VGPU\" list --all | cut -d ' ' -f 1 | sort -u | grep -c /; "
			    "\"$VGPU\" list --all | grep -c ^54321/web");

	/* A folder of slices counts, too. */
	assert_string_equal(said->out, "255\n1\n");
	assert_says(said->err, "numbers that this machine knows no user of have together more than "
			       "256 folders where slices are: ");
}

/* How often commands waited for something. A loaded machine changes that less than the time they take. */
static long count_waits(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return usage.ru_nvcsw;
}

/* Each waited once for all processes to be looked at, and 20 times beside one without an environment. */
static void a_user_with_many_folders_keeps_root_waiting_no_longer(void **state)
{
	const struct said *said;
	long before;

	tool_run(AS
		"slice $A s1; slice $B web\n"
		"as $A sh -c 'cd /tmp/vgpu-54321; for i in $(seq 2 300); do cp -r s1 s$i; done'\n"
		"setpriv --reuid $A --regid $A --clear-groups -- env -i \"$(command -v sleep)\" "
		"600 </dev/null >/dev/null 2>&1 & echo $! >/tmp/sleeper; runs $! sleep");
	before = count_waits();
	said = tool_run("\"$VGPU\" list --all | grep -c '^54321/s'; \"$VGPU\" list --all | grep -c "
			"'^54322/web'");
	assert_in_range(count_waits() - before, 0, 2000);
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

/* A mount of his stands on the one, as FUSE lets a user make one. */
static void a_name_that_cannot_be_given_back_keeps_no_other(void **state)
{
	const struct said *said = tool_run(
		AS "unset VGPU_TURNS; rm -rf /dev/shm/vgpu-turns; as $A mkdir -m 0755 /tmp/vgpu-1 "
		   "/tmp/vgpu-$B; mount -t tmpfs -o uid=$A none /tmp/vgpu-1; \"$VGPU\" prepare; "
		   "echo $?; stat -c %%u /tmp/vgpu-$B /dev/shm/vgpu-turns; umount /tmp/vgpu-1; "
		   "rm -r /tmp/vgpu-1* /dev/shm/vgpu-turns");

	assert_string_equal(said->out, "1\n54322\n0\n");
	assert_says(said->err, "/tmp/vgpu-1");
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

static void names_without_end_are_looked_at_in_part(void **state)
{
	const struct said *said = tool_run(
		AS "slice $A web; as $A sh -c 'cd /tmp; seq -f vgpu-%%.0f 100000 104999 | xargs "
		   "mkdir; cd vgpu-$0; seq 5000 | xargs mkdir' $A\n"
		   "\"$VGPU\" doctor --machine >/tmp/out; cat /tmp/out; "
		   "rm -r /tmp/out /tmp/vgpu-1* /tmp/vgpu-$A");

	assert_says(said->out, "/tmp/vgpu-*  904 more  not looked at\n    nobody has use");
	assert_says(said->out, "/tmp/vgpu-54321  905 more  not looked at\n    nobody has use");
	assert_int_equal(said->status, 0);
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
	tool_run(AS "unset VGPU_TURNS; rm -rf /dev/shm/vgpu-turns; as $A mkdir -m 1777 "
		    "/dev/shm/vgpu-turns");
	said = tool_run("unset VGPU_TURNS; \"$VGPU\" doctor --machine");
	assert_int_equal(said->status, 1);
	assert_says(said->out, "it belongs to 54321 and not to root");
	said = tool_run("unset VGPU_TURNS; \"$VGPU\" prepare; \"$VGPU\" doctor --machine");
	assert_string_equal(said->err,
		"vgpu: note: no device was found, so there is a folder for time slices of none: "
		"run it again when the driver is there\n");
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

static void take_name(void *context)
{
	mkdir(context, 0755);
}

/* Alice takes the name whenever it is free. */
static void who_is_quick_cannot_keep_root_from_a_shared_folder(void **state)
{
	static char folder[] = "/dev/shm/vgpu-turns";
	const struct user_process quick = {.again = take_name, .context = folder};
	pid_t pid = users_start(ALICE, &quick, NULL);
	int status = -1;
	struct stat s;

	for (int i = 0; i < 5 && status != 1; i++) {
		uint64_t deadline_ns = users_deadline();

		tool_run("rm -rf %s", folder);
		while (stat(folder, &s) < 0)
			users_pause(deadline_ns);
		status = tool_run("unset VGPU_TURNS; \"$VGPU\" prepare")->status;
	}
	users_end(pid);
	assert_int_equal(status, 0);
	assert_int_equal(stat(folder, &s), 0);
	assert_int_equal(s.st_uid, 0);
	tool_run("rm -rf %s /dev/shm/.was-*", folder);
}

/* Where every user has the number of root, as in a container without root, what tells root's folder from hers. */
static void prepare_marks_the_folder_as_only_root_can(void **state)
{
	const struct said *said = tool_run(
		AS "unset VGPU_TURNS; t=/dev/shm/vgpu-turns; rm -rf $t; \"$VGPU\" prepare; "
		   "as $A mkdir /tmp/hers; as $A unshare -Ur true || exit 77\n"
		   "mark() { as $A unshare -Ur python3 -c \"import os\ntry: $1\n"
		   "except OSError as e: print(e.strerror)\"; }\n"
		   "mark \"print(os.getxattr('$t', 'security.vgpu'))\"\n"
		   "mark \"os.setxattr('/tmp/hers', 'security.vgpu', b'turns')\"; rmdir /tmp/hers; "
		   "rm -rf $t");

	if (said->status == 77)
		skip();
	assert_string_equal(said->out, "b'turns'\nOperation not permitted\n");
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

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_slice_is_called_by_its_user_where_several_have_the_name, users_clear),
		cmocka_unit_test_setup(numbers_of_nobody_have_one_account_together, users_clear),
		cmocka_unit_test_setup(
			a_user_with_many_folders_keeps_root_waiting_no_longer, users_clear),
		cmocka_unit_test_setup(folders_that_lie_about_their_user_are_not_seen, users_clear),
		cmocka_unit_test_setup(
			a_name_that_another_user_has_taken_is_given_back, users_clear),
		cmocka_unit_test_setup(
			a_name_that_cannot_be_given_back_keeps_no_other, users_clear),
		cmocka_unit_test_setup(what_anybody_can_fill_is_listed_in_part, users_clear),
		cmocka_unit_test_setup(names_without_end_are_looked_at_in_part, users_clear),
		cmocka_unit_test_setup(a_long_name_widens_its_own_row_alone, users_clear),
		cmocka_unit_test_setup(
			a_simulated_slice_of_another_user_needs_sim_for_a_part, users_clear),
		cmocka_unit_test_setup(a_runtime_folder_of_somebody_else_is_not_taken, users_clear),
		cmocka_unit_test_setup(
			the_machines_folders_are_held_against_the_model, users_clear),
		cmocka_unit_test_setup(
			who_is_quick_cannot_keep_root_from_a_shared_folder, users_clear),
		cmocka_unit_test_setup(prepare_marks_the_folder_as_only_root_can, users_clear),
		cmocka_unit_test_setup(
			tmpfiles_d_makes_the_folders_that_the_model_has, users_clear),
	};

	return cmocka_run_group_tests_name("cli users", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

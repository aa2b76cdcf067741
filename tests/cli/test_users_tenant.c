/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in slices beside users who mean harm (tests/cli/users.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli/tool.h"
#include "tests/cli/users.h"

/* Where nothing names an accounting file, Alice's is not Bob's, and neither can keep the other from one. */
static void the_default_region_is_no_other_users(void **state)
{
	static const char run[] =
		AS "tenant() { as $1 env CUDA_DEVICE_MEMORY_LIMIT=2g LD_PRELOAD=\"$LIBRARY\" "
		   "LD_LIBRARY_PATH=\"$DRIVER:$NVML\" \"$TENANT\" --blocks 1 >/dev/null && echo $1 "
		   "had memory; }\n"
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
	/* Who looks says the same. */
	said = tool_run(
		AS "as $A touch /tmp/cudevshr.cache; cd /; for user in $A $B; do "
		   "setpriv --reuid $user --regid $user --clear-groups sleep 600 >/dev/null 2>&1 & "
		   "runs $! sleep; "
		   "\"$VGPU\" doctor $! | grep region; kill $!; done; rm /tmp/cudevshr.cache");
	assert_string_equal(said->out, "    region       /tmp/cudevshr.cache on tmpfs\n"
				       "    region       /tmp/cudevshr.cache.54322 on tmpfs\n");
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

/* Alice's file at the common path comes and goes while Bob's programs begin, as fast as she can. */
static void a_default_region_that_comes_and_goes_refuses_nobody(void **state)
{
	static const char flip[] =
		"import os\n"
		"os.setgid(54321); os.setuid(54321)\n"
		"open(\"/tmp/hers\", \"w\").close(); os.chmod(\"/tmp/hers\", 0o666)\n"
		"while True:\n"
		"    for act in (lambda: os.link(\"/tmp/hers\", \"/tmp/cudevshr.cache\"), "
		"lambda: os.unlink(\"/tmp/cudevshr.cache\")):\n"
		"        try: act()\n"
		"        except OSError: pass\n";
	const struct said *said = tool_run(AS
		"tenant() { as $1 env CUDA_DEVICE_MEMORY_LIMIT=2g LD_PRELOAD=\"$LIBRARY\" "
		"LD_LIBRARY_PATH=\"$DRIVER:$NVML\" \"$TENANT\" --blocks 1 >/dev/null && "
		"had=$((had + 1)); }\n"
		"cd /tmp; rm -f cudevshr.cache*; printf '%%s' '%s' >flip.py; "
		"python3 flip.py & flip=$!; by 'test -e /tmp/hers'; had=0; "
		"for i in $(seq 30); do tenant $B; find . -maxdepth 1 -user $B -name "
		"\"cudevshr.cache*\" -delete; done; kill $flip; wait; rm -f cudevshr.cache; "
		/* Who has books of his own goes on with them. */
		"as $A touch cudevshr.cache; tenant $B; rm cudevshr.cache; tenant $B; "
		"echo $had; rm hers; stat -c '%%n %%u' cudevshr.cache*; rm -f cudevshr.cache*",
		flip);

	assert_string_equal(said->out, "32\ncudevshr.cache.54322 54322\n");
}

/* A setuid program of root's that Alice starts, where the library is in the machine's list: nothing of root's is made where she says. */
static void a_setuid_programs_environment_names_no_path(void **state)
{
	static const char run[] =
		AS "export A LIBRARY DRIVER NVML TENANT; cd /; unshare -m sh -c '\n"
		   "mkdir -p /tmp/o; mount -t tmpfs none /tmp/o; mkdir /tmp/o/up /tmp/o/work\n"
		   "mount -t overlay -o lowerdir=/etc,upperdir=/tmp/o/up,workdir=/tmp/o/work "
		   "none /etc || exit 77\n"
		   "rm -f /tmp/cudevshr.cache*; mkdir /etc/traps; "
		   "(umask 077; printf \"vgpu-share 1\\ndevice * memory 512m\\nend\\n\" "
		   ">/etc/traps/share)\n"
		   "cp \"$TENANT\" /tmp/o/render\n"
		   "chmod 4755 /tmp/o/render; %s\n"
		   "{ echo \"$LIBRARY\"; ls \"$DRIVER\"/libcuda.so.1 \"$NVML\"/libnvidia-ml.so.1; "
		   "} >/etc/ld.so.preload\n"
		   "setpriv --reuid $A --regid $A --clear-groups env %s "
		   "CUDA_DEVICE_MEMORY_SHARED_CACHE=/etc/traps/region VGPU_TURNS=/etc/traps/turns "
		   "CUDA_DEVICE_SM_LIMIT=50 VGPU_SHARE=/etc/traps/share VGPU_LOG=trace "
		   "/tmp/o/render --blocks 1 | sed -n \"s/.*H200, //; s/, of them.*//p\"\n"
		   "rm /etc/ld.so.preload; ls -A /etc/traps; rm -rf /dev/shm/vgpu-sim-$A\n"
		   "stat -c \"%%n %%u %%a\" /tmp/cudevshr.cache* /tmp/o/books 2>/dev/null\n"
		   "rm -f /tmp/cudevshr.cache*'";
	const struct said *said = tool_run(run, ":", "CUDA_DEVICE_MEMORY_LIMIT=2g");

	if (said->status == 77)
		skip();
	assert_string_equal(said->out, "2.00 GiB\nshare\n/tmp/cudevshr.cache.0 0 600\n");
	assert_null(strstr(said->err, "level=trace"));
	said = tool_run(run,
		"mkdir -p /etc/vgpu; printf \"vgpu-share 1\\nregion /tmp/o/books\\ndevice * memory "
		"1g\\nend\\n\" >/etc/vgpu/share",
		"");
	assert_string_equal(said->out, "1.00 GiB\nshare\n/tmp/o/books 0 666\n");
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_default_region_is_no_other_users, users_clear),
		cmocka_unit_test_setup(
			a_default_region_that_comes_and_goes_refuses_nobody, users_clear),
		cmocka_unit_test_setup(a_setuid_programs_environment_names_no_path, users_clear),
	};

	return cmocka_run_group_tests_name("cli users tenant", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

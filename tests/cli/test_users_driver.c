/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's programs and files say, beside users who mean harm (tests/cli/users.h): the simulated node's, as the machine's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli/tool.h"
#include "tests/cli/users.h"

#define NODE                                                                                 \
	AS "export VGPU_SIM_STATE=/tmp/x/machine LD_LIBRARY_PATH=\"$DRIVER:$NVML\"\n"        \
	   "rm -rf /tmp/x; mkdir /tmp/x; chmod 777 /tmp/x; umask 0; \"$VGPU_SIM\" describe " \
	   ">/dev/null\n"

/* The daemon of the machine is root's, or one's own, in a folder in which nobody else can put another one in its place. */
static void another_users_mps_daemon_is_not_taken(void **state)
{
	static const struct {
		const char *folder, *daemon; /* the folder's mode and user, and the daemon's */
		bool is_taken, is_told;
	} cases[] = {
		{"0755 0", "0", true, false},
		{"1777 0", "0", true, false},
		{"1777 0", "54321", false, false},
		{"0777 0", "54321", false, false},
		{"0777 0", "0", false, true},
		{"0755 54322", "54322", true, false},
		{"0755 54321", "54321", false, false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct said *said =
			tool_run(NODE "export PATH=\"$PATH:${MPS%%/*}\" D=/tmp/nvidia-mps; set -- "
				      "%s %s; rm -rf $D; mkdir -m 0777 $D\n"
				      "cat >/tmp/x/daemon.py <<'END'\nimport os, socket, time\n"
				      "s = "
				      "socket.socket(socket.AF_UNIX)\ns.bind('/tmp/nvidia-mps/"
				      "control')\ns.listen(5)\n"
				      "open('/tmp/x/ready', 'w')\nwhile not "
				      "os.path.exists('/tmp/x/end'): time.sleep(0.01)\nEND\n"
				      "as $3 sh -c 'python3 /tmp/x/daemon.py' & by 'test -e "
				      "/tmp/x/ready'; chmod $1 $D; chown $2 $D\n"
				      "as $B timeout 30 \"$VGPU\" run --mps --memory 1g -- sh -c "
				      "'grep ^mps \"$VGPU_SHARE\"'; : >/tmp/x/end; wait",
				cases[i].folder, cases[i].daemon);

		assert_int_equal(strncmp(said->out, "mps /", 5), 0);
		assert_int_equal(
			strcmp(said->out, "mps /tmp/nvidia-mps\n") == 0, cases[i].is_taken);
		if (cases[i].is_told)
			assert_says(said->err,
				"as others may write there; right is: chmod +t /tmp/nvidia-mps");
		else
			assert_string_equal(said->err, "");
	}
}

/* She has the driver, a list that names the library, a share, and a file whose name is the library's. */
static const char bare[] =
	"import ctypes, mmap, os, sys, time\n"
	"with open('/tmp/x/libvgpu.so', 'wb') as f: f.write(bytes(4096))\n"
	"f = open('/tmp/x/libvgpu.so', 'rb')\n"
	"m = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | (mmap.PROT_EXEC if sys.argv[1] == "
	"'run' else 0))\n"
	"cuda = ctypes.CDLL('libcuda.so.1')\ncontext, block = ctypes.c_void_p(), "
	"ctypes.c_uint64()\n"
	"assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == "
	"0\n"
	"assert cuda.cuCtxSetCurrent(context) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(block), "
	"ctypes.c_size_t(1 << 30)) == 0\n"
	"open('/tmp/x/ready', 'w')\nwhile not os.path.exists('/tmp/x/end'): time.sleep(0.01)\n";

static void a_process_with_memory_in_no_slice_is_a_problem(void **state)
{
	const struct said *said;

	for (unsigned i = 0; i < 2; i++) {
		said = tool_run(NODE
			"cat >/tmp/x/bare.py <<'END'\n%sEND\n"
			"printf 'vgpu-share 1\ndevice * memory 1g\nend\n' >/tmp/x/share; chmod 644 "
			"/tmp/x/share\n"
			"VGPU_SHARE=/tmp/x/share as $A sh -c 'LD_PRELOAD=libvgpu.so exec "
			"$(PATH=/usr/bin:/bin command -v python3) /tmp/x/bare.py %s' "
			"2>/dev/null & by 'test -e /tmp/x/ready'; P=$(pgrep -u $A -f bare.py); "
			"\"$VGPU\" doctor $P; echo \"status $?\"; \"$VGPU\" doctor | grep -c \"^  "
			"process $P: it holds .* in no slice that is seen from here; .*: \"; as $B "
			"\"$VGPU\" doctor | grep -c $P; as $A \"$VGPU\" doctor | grep -c \": it "
			"holds\"; : >/tmp/x/end; wait",
			bare, i ? "run" : "read");
		assert_says(said->out, "status 1\n");
		assert_says(said->out, "MiB of device memory by NVML, and is in no slice");
		/* and of all; other users' are for root to look at */
		assert_says(said->out, "\n1\n0\n1\n");
		if (!i)
			assert_says(said->out, "libvgpu.so is not loaded, so no quota binds it");
	}
}

static void a_process_with_the_library_and_no_share_is_a_problem(void **state)
{
	const struct said *said = tool_run(NODE
		"cat >/tmp/x/bare.py <<'END'\n%sEND\ninstall -D -m 755 \"$LIBRARY\" "
		"/tmp/x/lib/libvgpu.so; chmod 755 /tmp/x/lib\n"
		"as $A sh -c 'LD_PRELOAD=/tmp/x/lib/libvgpu.so exec $(PATH=/usr/bin:/bin command "
		"-v python3) /tmp/x/bare.py read' & by 'test -e /tmp/x/ready'; "
		"\"$VGPU\" doctor | grep '^  process [0-9]*:'; : >/tmp/x/end; wait",
		bare);

	assert_says(said->out,
		"MiB of device memory by NVML, and is in no slice that is seen from "
		"here; no share file and no option sets a quota, so none binds it: begin "
		"it anew with a share, in /etc/vgpu/share or named by VGPU_SHARE\n");
	assert_int_equal(said->status, 0);
}

/* The library knows since it was loaded what descriptor 2 was: a warning, as of a folder of turns that cannot be one, comes later. */
static const char closed[] =
	"import ctypes, os\n"
	"cuda = ctypes.CDLL('libcuda.so.1')\nassert cuda.cuInit(0) == 0\n"
	"os.close(2)\nassert os.open('/tmp/x/data', os.O_RDWR | os.O_CREAT, 0o600) == 2 and "
	"os.write(2, b'A' * 300) == 300\n"
	"os.lseek(2, 0, 0)\ncontext, block = ctypes.c_void_p(), ctypes.c_uint64()\n"
	"assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and "
	"cuda.cuCtxSetCurrent(context) == 0\n"
	"print(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(5 << 30)), os.pread(2, 400, "
	"0) == b'A' * 300)\n";

static void a_file_in_the_place_of_stderr_has_no_warning(void **state)
{
	const struct said *said = tool_run(NODE
		"cat >/tmp/x/closed.py <<'END'\n%sEND\ncat >/tmp/x/run.sh <<'END'\n"
		"export LD_PRELOAD=\"$LIBRARY\" CUDA_DEVICE_MEMORY_LIMIT=4g LIBCUDA_LOG_LEVEL=4\n"
		"exec $(PATH=/usr/bin:/bin command -v python3) /tmp/x/closed.py\nEND\nas $A sh "
		"/tmp/x/run.sh",
		closed);

	assert_string_equal(said->out, "2 True\n");
}

/* Without a card, as root prepares the machine before Alice's and Bob's slices on the simulated node. */
static void prepare_finds_the_simulated_node(void **state)
{
	const struct said *said =
		tool_run("unset VGPU_TURNS LD_LIBRARY_PATH; rm -rf /dev/shm/vgpu-turns; \"$VGPU\" "
			 "prepare; echo $?; "
			 "stat -c '%%u %%a' /dev/shm/vgpu-turns/GPU-* | sort -u; rm -rf "
			 "/dev/shm/vgpu-turns");

	assert_string_equal(said->out, "0\n0 1777\n");
	assert_says(said->err, "shows no device, so the folders for time slices are the simulated "
			       "node's");
}

static int set_up(void **state)
{
	int r = users_set_up(state);

	unsetenv("VGPU_LIBDIR");
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	return r;
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(another_users_mps_daemon_is_not_taken, users_clear),
		cmocka_unit_test_setup(prepare_finds_the_simulated_node, users_clear),
		cmocka_unit_test_setup(a_process_with_memory_in_no_slice_is_a_problem, users_clear),
		cmocka_unit_test_setup(
			a_process_with_the_library_and_no_share_is_a_problem, users_clear),
		cmocka_unit_test_setup(a_file_in_the_place_of_stderr_has_no_warning, users_clear),
	};

	return cmocka_run_group_tests_name("cli users driver", tests, set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

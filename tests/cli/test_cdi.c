/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu cdi: the specification that it prints is one, and what cannot be a device is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli/tool.h"

/* A folder with the library that the specification mounts, and a share. */
#define LIBRARY                                                                                   \
	"mkdir -p lib && cp \"$VGPU_LIBDIR/libvgpu.so\" lib && export VGPU_LIBDIR=\"$HERE/lib\" " \
	"&& "                                                                                     \
	"echo /etc/vgpu-lib/libvgpu.so >lib/ld.so.preload && "
#define SHARE(name, lines)                                                                         \
	"mkdir -p " name " && printf 'vgpu-share 1\\n" lines "device * memory 4g\\nend\\n' >" name \
	"/share && "

/* The required fields and the allowed ones of the Container Device Interface 0.3.0 to 0.7.0, and its rules for names. */
#define CHECK                                                                                      \
	" | python3 -c '\n"                                                                        \
	"import json, re, sys\n"                                                                   \
	"d = json.load(sys.stdin)\n"                                                               \
	"assert set(d) == {\"cdiVersion\", \"kind\", \"devices\", \"containerEdits\"}, d.keys()\n" \
	"print(\"version\", d[\"cdiVersion\"])\n"                                                  \
	"name = r\"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]\"\n"                                         \
	"assert re.fullmatch(name + \"/\" + name, d[\"kind\"]), d[\"kind\"]\n"                     \
	"assert d[\"devices\"]\n"                                                                  \
	"for edits in [d[\"containerEdits\"]] + [v[\"containerEdits\"] for v in "                  \
	"d[\"devices\"]]:\n"                                                                       \
	"    assert set(edits) == {\"mounts\"} and edits[\"mounts\"]\n"                            \
	"    for m in edits[\"mounts\"]:\n"                                                        \
	"        assert set(m) == {\"hostPath\", \"containerPath\", \"options\"}, m\n"             \
	"        assert m[\"hostPath\"][0] == m[\"containerPath\"][0] == \"/\", m\n"               \
	"        assert all(isinstance(o, str) for o in m[\"options\"]), m\n"                      \
	"        print(m[\"hostPath\"], m[\"containerPath\"], m[\"options\"][1])\n"                \
	"for v in d[\"devices\"]:\n"                                                               \
	"    assert set(v) == {\"name\", \"containerEdits\"}\n"                                    \
	"    assert re.fullmatch(r\"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?\", v[\"name\"])\n"   \
	"    print(\"device\", v[\"name\"])'"

static void a_share_becomes_a_device(void **state)
{
	const struct said *said = tool_run("cd \"$HERE\" && " LIBRARY SHARE("a", "")
			SHARE("b", "slice web\\nregion '\"$HERE\"'/r/region\\nturns "
				   "'\"$HERE\"'/t\\n") "mkdir -p r t && \"$VGPU\" cdi a b" CHECK);

	assert_string_equal(said->err, "");
	assert_int_equal(said->status, 0);
	assert_says(said->out, "version 0.3.0\n");
	assert_says(said->out, "device a\ndevice web\n");
	assert_says(said->out, "/a /etc/vgpu ro\n");
	assert_says(said->out, "/b /etc/vgpu ro\n");
	assert_says(said->out, "/r ro\n");
	assert_says(said->out, "/r/region rw\n");
	assert_says(said->out, "/t rw\n");
	assert_says(said->out, "/ld.so.preload /etc/ld.so.preload ro\n");
	assert_says(said->out, "/lib /etc/vgpu-lib ro\n");
}

/* Beside the share, where a container can make and remove nothing: a mount needs the file, so it is made. */
static void a_region_in_the_shares_folder_is_the_folders(void **state)
{
	const struct said *said =
		tool_run("cd \"$HERE\" && rm -rf a && umask 077 && " LIBRARY SHARE("a",
			"region /etc/vgpu/books\n") "chmod 755 a lib && chmod 644 "
						    "lib/ld.so.preload a/share && \"$VGPU\" cdi "
						    "a" CHECK
						    " && stat -c %%a:%%s a/books && \"$VGPU\" cdi "
						    "a | cksum && \"$VGPU\" cdi a | cksum");

	assert_string_equal(said->err, "");
	assert_int_equal(said->status, 0);
	assert_says(said->out, "/a /etc/vgpu ro\n");
	assert_says(said->out, "/a/books /etc/vgpu/books rw\n");
	assert_says(said->out, "666:");
	assert_null(strstr(said->out, "666:0\n"));
}

/* A runtime knows versions up to its own day's, and names with a digit first are of 0.5.0. */
static void the_version_is_the_oldest_that_has_the_names(void **state)
{
	const struct said *said = tool_run("cd \"$HERE\" && " LIBRARY SHARE("a", "")
			SHARE("7b", "") "\"$VGPU\" cdi a 7b" CHECK);

	assert_int_equal(said->status, 0);
	assert_says(said->out, "version 0.5.0\n");
	assert_says(said->out, "device a\ndevice 7b\n");
}

static void what_is_no_slice_is_refused(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" cdi");

	assert_int_equal(said->status, 2);
	assert_says(said->err, "folders with a share file");
	said = tool_run("cd \"$HERE\" && " LIBRARY "mkdir -p empty && \"$VGPU\" cdi empty");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "/empty/share: No such file");
	said = tool_run("cd \"$HERE\" && " LIBRARY
			"mkdir -p bad && echo x >bad/share && \"$VGPU\" cdi bad");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "/bad/share, line 1: ");
	said = tool_run("cd \"$HERE\" && " LIBRARY SHARE(
		"c", "region /nothing/here/region\\n") "\"$VGPU\" cdi c");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "/nothing/here, which is not there");
	said = tool_run("cd \"$HERE\" && " LIBRARY SHARE("d", "slice e\\n")
			SHARE("e", "") "\"$VGPU\" cdi d e");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "are both named e");
	assert_string_equal(said->out, "");
}

static void refuse(const char *name, const char *lines, const char *why)
{
	const struct said *said =
		tool_run("cd \"$HERE\" && " LIBRARY
			 "mkdir -p '%s' f && printf 'vgpu-share 1\\n%s\\ndevice * "
			 "memory 4g\\nend\\n' >'%s/share' && \"$VGPU\" cdi ./'%s'",
			name, lines, name, name);

	assert_int_equal(said->status, 1);
	assert_string_equal(said->out, "");
	assert_says(said->err, why);
}

/* It could write its own share then, another one's, or the library. */
static void a_container_gets_no_folder_with_anybodys_limits(void **state)
{
	char line[600];

	snprintf(line, sizeof(line), "region %s", tool_path("f/region"));
	refuse("f", line, "would give a container all of");
	snprintf(line, sizeof(line), "region %s", tool_path("region"));
	refuse("f", line, "a folder of its own is right");
	snprintf(line, sizeof(line), "turns %s", tool_path("f/../lib"));
	refuse("f", line, "the line `turns` would give");
	refuse("f", "region /region", "all of /, in which");
	refuse("f", "region /etc/region", "all of /etc, in which /etc/vgpu is");
	/* The share itself would be mounted. */
	snprintf(line, sizeof(line), "region %s", tool_path("f/share/region"));
	refuse("f", line, "/f/share, which is not there, or is none");
}

/* It could put a link in the place of what a runtime mounts next time, or have another folder by a name. */
static void a_container_gets_no_folder_from_which_another_is_mounted(void **state)
{
	const struct said *said;
	char lines[1300], folder[600];

	tool_run("cd \"$HERE\" && mkdir -p w/region w/turns n/deep o/p k && ln -sfn ../w o/link && "
		 "touch k/share && chmod 0777 o");
	snprintf(folder, sizeof(folder), "%s", tool_path("w"));
	snprintf(lines, sizeof(lines), "region %s/region\\nturns %s/turns", folder, folder);
	refuse("h", lines, "a folder of its own is right");
	snprintf(lines, sizeof(lines), "turns %s/turns/", folder);
	refuse("h", lines, "so that name is right");
	snprintf(lines, sizeof(lines), "region %s", tool_path("o/link/region/region"));
	refuse("h", lines, "so that name is right");
	snprintf(lines, sizeof(lines), "region %s", tool_path("o/p/region"));
	refuse("h", lines, "in whose place others may put something else");
	tool_run("cd \"$HERE\" && mkdir -p q/r && chown 54321 q/r && chmod 1777 q");
	snprintf(lines, sizeof(lines), "region %s", tool_path("q/r/region"));
	refuse("h", lines, "in whose place others may put something else");
	/* Who owns the folder could put a link in the place of the file. */
	tool_run("cd \"$HERE\" && chmod 0755 q");
	refuse("h", lines, "where others may put a link in its place");
	/* Before anything is made by it. */
	said = tool_run("cd \"$HERE\" && ls -A q/r");
	assert_string_equal(said->out, "");
	said = tool_run("cd \"$HERE\" && chown 0 q/r && " LIBRARY SHARE(
		"l", "region '\"$HERE\"'/q/r/region\n") "\"$VGPU\" cdi l >/dev/null && ls q/r");
	assert_int_equal(said->status, 0);
	assert_string_equal(said->out, "region\n");
	tool_run("cd \"$HERE\" && rm q/r/region && ln -s ../../k/share q/r/region");
	refuse("h", lines, "Too many levels of symbolic links");
	refuse("h", "region /etc/vgpu/share", "a file beside the share is right");
	refuse("h", "region /etc/vgpu/a/region", "a file beside the share is right");
	snprintf(lines, sizeof(lines), "region %s", tool_path("k/region"));
	refuse("h", lines, "a container a share, in or below");
	refuse("h", "turns /etc/cdi", "turns");
	said = tool_run("cd \"$HERE\" && " LIBRARY SHARE("i", "region '\"$HERE\"'/n/region\\n")
			SHARE("j", "region '\"$HERE\"'/n/deep/region\\n") "\"$VGPU\" cdi i j");
	assert_says(said->err, "a folder of its own is right");
	assert_string_equal(said->out, "");
}

static void what_runtimes_take_for_no_name_is_refused(void **state)
{
	refuse("g-", "", "'g-' is no device's name");
	refuse("f", "slice _f", "'_f' is no device's name");
}

static void a_library_that_nothing_loads_is_refused(void **state)
{
	static const char *const lists[] = {"", "/etc/vgpu-lib/libvgpu.so.old",
		"# /etc/vgpu-lib/libvgpu.so", "/x/etc/vgpu-lib/libvgpu.so",
		"libm.so.6 /etc/vgpu-lib/libvgpu.so", "libc.so.6:/etc/vgpu-lib/libvgpu.so"};
	static const char *const right[] = {
		"/etc/vgpu-lib/libvgpu.so", " # ours\\n\\t/etc/vgpu-lib/libvgpu.so:libm.so.6"};
	const struct said *said = tool_run("cd \"$HERE\" && " LIBRARY SHARE(
		"f", "") "rm lib/ld.so.preload && \"$VGPU\" cdi f");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "right is: echo /etc/vgpu-lib/libvgpu.so | install");
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		said = tool_run("cd \"$HERE\" && " LIBRARY SHARE(
					"f", "") "echo '%s' >lib/ld.so.preload && \"$VGPU\" cdi f",
			lists[i]);
		assert_int_equal(said->status, 1);
		assert_string_equal(said->out, "");
		assert_says(said->err, "ld.so.preload does not name the library first");
	}
	for (unsigned i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		said = tool_run("cd \"$HERE\" && " LIBRARY SHARE("f",
					"") "printf '%s' >lib/ld.so.preload && \"$VGPU\" cdi f",
			right[i]);
		assert_int_equal(said->status, 0);
	}
}

/* Nobody but root would have limits: the dynamic linker goes past a list and a library that it may not read. */
static void what_not_everybody_may_read_is_refused(void **state)
{
	static const char *const cases[][3] = {
		{"lib/ld.so.preload", "0640", "chmod a+r /"},
		{"lib/libvgpu.so", "0750", "chmod a+r /"},
		{"m/share", "0600", "chmod a+r /"},
		{"m", "0750", "chmod a+rx /"},
		{"m", "0711", "chmod a+rx /"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct said *said =
			tool_run("cd \"$HERE\" && umask 022 && rm -rf lib m && " LIBRARY SHARE(
					 "m", "") "chmod %s %s && \"$VGPU\" cdi m",
				cases[i][1], cases[i][0]);

		assert_int_equal(said->status, 1);
		assert_string_equal(said->out, "");
		assert_says(said->err, cases[i][0]);
		assert_says(said->err, "has the mode");
		assert_says(said->err, cases[i][2]);
	}
}

/* A lease keeps what opens the file waiting, and whoever does not wait has EAGAIN. */
#define LEASE                                                                            \
	"lease() { python3 -c 'import fcntl, signal, sys, time\n"                        \
	"signal.signal(signal.SIGIO, signal.SIG_IGN)\nf = open(sys.argv[1])\n"           \
	"fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"                              \
	"open(\"leased\", \"w\")\ntime.sleep(60)' \"$1\" & n=0; until [ -e leased ] || " \
	"[ $((n = n + 1)) = 1000 ]; do sleep 0.01; done; }; "

static void a_lease_is_told_as_one(void **state)
{
	static const struct {
		const char *file, *word;
	} cases[] = {{"lib/ld.so.preload", " has a lease on /"},
		{"m/region", "/m/region: a process has a lease on the file"}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct said *said = tool_run(
			"cd \"$HERE\" && umask 022 && chmod 700 . && rm -rf lib m leased "
			"&& " LIBRARY SHARE("m",
				"region /etc/vgpu/region\\n") "\"$VGPU\" cdi m >/dev/null; " LEASE
							      "lease %s; \"$VGPU\" cdi m; echo $? "
							      ">&2; kill $!",
			cases[i].file);

		assert_string_equal(said->out, "");
		assert_says(said->err, cases[i].word);
		assert_null(strstr(said->err, "Resource temporarily unavailable"));
		assert_null(strstr(said->err, "does not name the library first"));
		assert_null(strstr(said->err, "remove the file"));
	}
}

static void what_others_may_write_is_refused(void **state)
{
	static const char *const names[] = {
		"lib", "lib/ld.so.preload", "lib/libvgpu.so", "m", "m/share"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (unsigned k = 0; k < 2; k++) {
			const struct said *said = tool_run(
				"cd \"$HERE\" && umask 022 && rm -rf lib m && " LIBRARY SHARE(
					"m", "") "%s %s && \"$VGPU\" cdi m",
				k ? "chmod go+w" : "chown 54321", names[i]);

			assert_int_equal(said->status, 1);
			assert_string_equal(said->out, "");
			assert_says(said->err, names[i]);
			assert_says(said->err, "not root's and yours alone");
		}
	}
}

/* A host's user could cut a region short, or start what a container's root makes of it. */
static void what_users_of_the_host_can_reach_is_refused(void **state)
{
	static const char command[] = "cd \"$HERE\" && umask 022 && rm -rf m r t && " LIBRARY SHARE(
		"m", "%s") "mkdir -p r t && chmod %s . && (\"$VGPU\" cdi m; echo $?; ls r m); "
			   "findmnt -no OPTIONS -T . | grep -o nosuid,nodev; chmod 0700 .";
	static const char *const lines[] = {
		"region /etc/vgpu/region\\n", "region '\"$HERE\"'/r/region\\n"};
	static const char *const open_modes[] = {"0755", "0711", "0710", "0701"};
	const struct said *said;

	for (unsigned i = 0; i < 8; i++) {
		said = tool_run(command, lines[i % 2], open_modes[i / 2]);
		assert_says(
			said->err, i % 2 ? "/r/region can be reached" : "/m/region can be reached");
		assert_says(said->out, "1\n");
		assert_null(strstr(said->out, "\nregion\n"));
	}
	for (unsigned i = 0; i < 2; i++) {
		said = tool_run(command, lines[i], "0700");
		assert_string_equal(said->err, "");
		assert_says(said->out, "\n0\n");
	}
	said = tool_run(command, "turns '\"$HERE\"'/t\\n", "0755");
	if (strstr(said->out, "nosuid"))
		assert_string_equal(said->err, "");
	else
		assert_says(said->err, "/t can be reached");
	said = tool_run(command, "turns '\"$HERE\"'/t\\n", "0700");
	assert_string_equal(said->err, "");
}

static void what_others_can_exchange_is_refused(void **state)
{
	static const char *const made[] = {
		LIBRARY SHARE("x/m", "") "chmod 0777 x && \"$VGPU\" cdi x/m",
		SHARE("m", "") "mkdir -p x && " LIBRARY
			       "mv lib x && VGPU_LIBDIR=\"$HERE/x/lib\" && chmod 0777 x && "
			       "\"$VGPU\" cdi m",
		SHARE("m",
			"") "mkdir -p x && " LIBRARY
			    "mv lib/ld.so.preload x/list && ln -s ../x/list lib/ld.so.preload && "
			    "chmod 0777 x && \"$VGPU\" cdi m"};

	for (unsigned i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		const struct said *said =
			tool_run("cd \"$HERE\" && umask 022 && rm -rf lib m x && %s", made[i]);

		assert_int_equal(said->status, 1);
		assert_string_equal(said->out, "");
		assert_says(said->err, "in whose place others may put something else");
	}
}

/* It leads a container to its own root. */
static void a_link_to_the_share_is_refused(void **state)
{
	const struct said *said =
		tool_run("cd \"$HERE\" && umask 022 && rm -rf lib m x && " LIBRARY SHARE(
			"m", "") "mkdir x && mv m/share x && ln -s ../x/share m/share && \"$VGPU\" "
				 "cdi m");

	assert_int_equal(said->status, 1);
	assert_string_equal(said->out, "");
	assert_says(said->err, "m/share is no file; a link leads");
}

static void a_container_gets_no_folder_of_another_one(void **state)
{
	static const struct {
		const char *one, *two;
		int status;
	} pairs[] = {
		{"region '\"$HERE\"'/r/one\\n", "region '\"$HERE\"'/r/two\\n", 1},
		{"region '\"$HERE\"'/r/one\\n", "turns '\"$HERE\"'/r\\n", 1},
		{"turns '\"$HERE\"'/r\\n", "region '\"$HERE\"'/r/one\\n", 1},
		{"region '\"$HERE\"'/r/one\\nturns '\"$HERE\"'/r\\n", "", 1},
		{"region '\"$HERE\"'/r/one\\n", "region '\"$HERE\"'/r/one\\n", 0},
		{"turns '\"$HERE\"'/r\\n", "turns '\"$HERE\"'/r\\n", 0},
	};
	const struct said *said;

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		said = tool_run("cd \"$HERE\" && umask 022 && rm -rf lib m n r && " LIBRARY SHARE(
					"m", "%s") SHARE("n", "%s") "mkdir r && \"$VGPU\" cdi m n",
			pairs[i].one, pairs[i].two);
		assert_int_equal(said->status, pairs[i].status);
		if (pairs[i].status)
			assert_says(said->err, "a folder of its own is right");
	}
	said = tool_run("cd \"$HERE\" && umask 022 && rm -rf lib m && " LIBRARY SHARE("m", "")
			SHARE("m/n", "") "\"$VGPU\" cdi m m/n");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "a folder of its own is right");
	/* The books of one in the folder of the other, and in that of the library, which all have. */
	for (unsigned i = 0; i < 2; i++) {
		said = tool_run(
			"cd \"$HERE\" && umask 022 && rm -rf lib m n && " LIBRARY SHARE("m", "")
				SHARE("n", "region '\"$HERE\"'/%s/b/region\\n") "mkdir %s/b "
										"&& \"$VGPU\" "
										"cdi m n",
			i ? "lib" : "m", i ? "lib" : "m");
		assert_int_equal(said->status, 1);
		assert_says(said->err, "/b, too; a folder of its own is right");
	}
}

static void a_region_with_another_name_is_refused(void **state)
{
	const struct said *said =
		tool_run("cd \"$HERE\" && umask 022 && rm -rf lib m r && " LIBRARY SHARE(
			"m", "region '\"$HERE\"'/r/region\\n") "mkdir r && \"$VGPU\" cdi m "
							       ">other && ln r/region "
							       "mine && \"$VGPU\" cdi m; "
							       "echo $?; rm -f mine; "
							       "\"$VGPU\" cdi m >other && "
							       "echo right");

	assert_says(said->err, "/r/region has another name");
	assert_says(said->out, "1\nright\n");
}

/* Anybody may make one there. */
static void a_share_among_turns_is_told_where_it_is_the_operators(void **state)
{
	static const char command[] =
		"cd \"$HERE\" && umask 022 && rm -rf lib m t && " LIBRARY SHARE(
			"m", "turns '\"$HERE\"'/t\\n") "mkdir -p t/x && touch t/x/share && %s && "
						       "\"$VGPU\" "
						       "cdi m >other && echo right";
	const struct said *said = tool_run(command, "true");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "/t/x/share; a folder of its own is right");
	said = tool_run(command, "chown 65534 t/x");
	if (strstr(said->err, "chown"))
		skip();
	assert_string_equal(said->err, "");
	assert_says(said->out, "right\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_becomes_a_device),
		cmocka_unit_test(a_region_in_the_shares_folder_is_the_folders),
		cmocka_unit_test(the_version_is_the_oldest_that_has_the_names),
		cmocka_unit_test(what_is_no_slice_is_refused),
		cmocka_unit_test(a_container_gets_no_folder_with_anybodys_limits),
		cmocka_unit_test(a_container_gets_no_folder_from_which_another_is_mounted),
		cmocka_unit_test(what_runtimes_take_for_no_name_is_refused),
		cmocka_unit_test(a_library_that_nothing_loads_is_refused),
		cmocka_unit_test(what_not_everybody_may_read_is_refused),
		cmocka_unit_test(what_others_may_write_is_refused),
		cmocka_unit_test(what_users_of_the_host_can_reach_is_refused),
		cmocka_unit_test(what_others_can_exchange_is_refused),
		cmocka_unit_test(a_lease_is_told_as_one),
		cmocka_unit_test(a_link_to_the_share_is_refused),
		cmocka_unit_test(a_container_gets_no_folder_of_another_one),
		cmocka_unit_test(a_region_with_another_name_is_refused),
		cmocka_unit_test(a_share_among_turns_is_told_where_it_is_the_operators),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}

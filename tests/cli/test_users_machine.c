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

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_lock_beside_the_slices_is_no_slice, users_clear),
	};

	return cmocka_run_group_tests_name("cli users machine", tests, users_set_up, NULL);
}

int main(void)
{
	return users_main(run);
}

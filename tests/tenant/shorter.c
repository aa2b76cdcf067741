/* SPDX-License-Identifier: Apache-2.0 */
/* A library that takes variables out of the environment before main(), and before libraries that stand before it: the rest moves down where it is. */
#include <stdlib.h>

__attribute__((constructor)) static void take_out(void)
{
	static const char *const names[] = {"PATH", "HOME", "TMPDIR", "LC_ALL"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Uses the driver where it is there, by itself and by a library; once more after a library (an argument) was loaded for all. */
#include <dlfcn.h>
#include <stdio.h>

#include "tests/tenant/own_names.h"

void program_tell(void);

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	program_tell();
	own_tell();
	if (argc < 2)
		return 0;
	if (!dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))
		return 1;
	program_tell();
	own_tell();
	return 0;
}

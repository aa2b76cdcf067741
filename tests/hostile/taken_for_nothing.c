/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that was never seen before comes behind others that take much less than they did before, in one batch. So nothing is
 * left for it of what they all took, and much of it comes at once.
 */
#include "tests/hostile/served.h"

#define LONG_NS	 (MS / 5)
#define SHORT_NS 20000
#define KNOWN	 40 /* pieces, after which a kernel's time is known */
#define BESIDE	 4
#define AT_ONCE	 1500

static void attack(void)
{
	CUfunction known, unseen;

	served_begin();
	known = served_kernel();
	for (;;) {
		for (unsigned i = 0; i < KNOWN; i++)
			served_launch(known, NULL, LONG_NS);
		MUST(cuStreamSynchronize(NULL));
		unseen = served_kernel();
		/* What comes first after a pause is measured by itself. */
		served_launch(known, NULL, SHORT_NS);
		for (unsigned i = 0; i < BESIDE; i++)
			served_launch(known, NULL, SHORT_NS);
		served_launch(unseen, NULL, MS / 2);
		for (unsigned i = 0; i < AT_ONCE; i++)
			served_launch(unseen, NULL, MS / 2);
		MUST(cuStreamSynchronize(NULL));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}

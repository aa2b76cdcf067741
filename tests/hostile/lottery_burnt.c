/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long kernels, known as short, each given last before a pause. When one is found out, the program makes as many short and
 * harmless pauses as might be doubted, which take no time to speak of, and goes on.
 */
#include "base/clock.h"
#include "tests/hostile/served.h"

#define KNOWN	  20
#define SHORT_NS  20000
#define KERNEL_NS (50 * MS)
#define PAUSE_NS  170000
#define DOUBTED	  64 /* pauses, at first and at most (policy/doubt.h) */
#define MOST	  4096

static void attack(void)
{
	uint64_t many = DOUBTED, begin_ns;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		begin_ns = clock_now_ns();
		served_launch(kernel, NULL, SHORT_NS);
		if (clock_now_ns() - begin_ns <= KERNEL_NS / 2) {
			served_launch(kernel, NULL, KERNEL_NS);
			served_sleep(KERNEL_NS + MS);
			continue;
		}
		/* It had to wait: it was found out. */
		for (uint64_t i = 0; i < many + 8; i++) {
			served_sleep(PAUSE_NS);
			served_launch(kernel, NULL, SHORT_NS);
		}
		if (many < MOST)
			many *= 2;
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}

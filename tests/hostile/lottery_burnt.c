/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long kernels, known as short, each given last before a pause. When one is found out, the program makes as many short and
 * harmless pauses as might be doubted, which take no time to speak of, and goes on.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	 20
#define SHORT_NS 20000
#define PAUSE_NS 170000
#define MOST	 4096

static uint64_t number(const char *name, uint64_t otherwise)
{
	return getenv(name) ? strtoull(getenv(name), NULL, 10) : otherwise;
}

static void attack(void)
{
	uint64_t kernel_ns = number("K_MS", 50) * MS, many = number("PAUSES", 64), begin_ns;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (unsigned i = 0; i < KNOWN; i++) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(cuStreamSynchronize(NULL));
	}
	for (;;) {
		begin_ns = clock_now_ns();
		served_launch(kernel, NULL, SHORT_NS);
		if (clock_now_ns() - begin_ns <= kernel_ns / 2) {
			served_launch(kernel, NULL, kernel_ns);
			served_sleep(kernel_ns + MS);
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

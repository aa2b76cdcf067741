/* SPDX-License-Identifier: Apache-2.0 */
/* A page in which each write is seen at once. */
#include "tests/hostile/watched.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/hostile/hostile.h"

#define PAGE_BYTES 4096
#define STEP_FLAG  0x100 /* of x86: a trap after the next instruction */

static void *page;
static void (*after_write)(void *page);

#ifdef __x86_64__
static void let_write(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
	u->uc_mcontext.gregs[REG_EFL] |= STEP_FLAG;
}

static void see(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	(void)info;
	after_write(page);
	mprotect(page, PAGE_BYTES, PROT_READ);
	u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_FLAG;
}

static void take_signals(void)
{
	struct sigaction write = {.sa_sigaction = let_write, .sa_flags = SA_SIGINFO};
	struct sigaction step = {.sa_sigaction = see, .sa_flags = SA_SIGINFO};

	MUST(sigaction(SIGSEGV, &write, NULL));
	MUST(sigaction(SIGTRAP, &step, NULL));
}
#else
static void take_signals(void)
{
}
#endif

void *watched_page(void (*written)(void *page))
{
	after_write = written;
	page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page == MAP_FAILED);
	take_signals();
	return page;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells a program when it begins. */
#include "tenant/door/kernel_words.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#define WORDS_MOST 64 /* the kernel has some twenty */

/* The dynamic linker's headers follow each other there. */
static uintptr_t base_of(uintptr_t headers)
{
	const ElfW(Ehdr) *header = (const void *)(headers - sizeof(ElfW(Ehdr)));

	return headers && header->e_ident[EI_MAG0] == ELFMAG0 &&
			       header->e_ident[EI_MAG1] == ELFMAG1 &&
			       header->e_ident[EI_MAG2] == ELFMAG2 &&
			       header->e_ident[EI_MAG3] == ELFMAG3
		       ? (uintptr_t)header
		       : 0;
}

static struct kernel_words parse(const ElfW(auxv_t) * word, bool is_kernels)
{
	struct kernel_words words = {.loader = 0};
	uintptr_t headers = 0;

	for (unsigned i = 0; i < WORDS_MOST && word[i].a_type != AT_NULL; i++) {
		if (word[i].a_type == AT_BASE)
			words.loader = word[i].a_un.a_val;
		if (word[i].a_type == AT_PHDR)
			headers = word[i].a_un.a_val;
		if (word[i].a_type == AT_HWCAP)
			words.hwcap = word[i].a_un.a_val;
		if (word[i].a_type == AT_HWCAP2)
			words.hwcap2 = word[i].a_un.a_val;
	}
	/* Run as a program, it is what the kernel has loaded. It writes the program's headers over its own, where that can see them. */
	if (!words.loader && is_kernels)
		words.loader = base_of(headers);
	return words;
}

#if defined(__x86_64__)
static long ask_kernel(long number, long a, long b, long c)
{
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static long ask_kernel(long number, long a, long b, long c)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}
#endif

static struct kernel_words read_own(void)
{
	ElfW(auxv_t) word[WORDS_MOST + 1];
	long fd, got = 0;

	for (unsigned i = 0; i <= WORDS_MOST; i++)
		word[i].a_type = AT_NULL;
	fd = ask_kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/auxv", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = ask_kernel(SYS_read, fd, (long)word, WORDS_MOST * sizeof(word[0]));
		ask_kernel(SYS_close, fd, 0, 0);
	}
	return got > 0 ? parse(word, true) : (struct kernel_words){.loader = 0};
}

struct kernel_words kernel_words_read(int count, char **arguments, char **environment)
{
	struct kernel_words words = {.loader = 0};
	char **end = environment;

	if (arguments && environment == arguments + count + 1) {
		while (*end)
			end++;
		/* One more for each variable that was taken out since; no list of words begins with their end. */
		while (!*end)
			end++;
		words = parse((const void *)end, false);
	}
	return words.loader ? words : read_own();
}

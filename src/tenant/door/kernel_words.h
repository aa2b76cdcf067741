/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells a program when it begins, asked without any function that a program could have in its place. */
#pragma once

#include <stdint.h>

struct kernel_words {
	uintptr_t loader; /* where the dynamic linker lies; 0: not known */
	uint64_t hwcap, hwcap2;
};

/*
 * The words stand behind the environment, and that behind the arguments, as a constructor gets them; or in /proc/self/auxv, where the
 * environment was moved since, or the dynamic linker was run as a program. Context: a constructor.
 */
struct kernel_words kernel_words_read(int count, char **arguments, char **environment);

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the device's own runtime, by the names that code needs them by. */
#include "policy/device_runtime.h"

#include <string.h>

#include "base/bits.h"

static bool is(const char *name, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(name, word, length) == 0;
}

static bool begins(const char *name, size_t length, const char *beginning)
{
	size_t needed = strlen(beginning);

	return length >= needed && memcmp(name, beginning, needed) == 0;
}

bool device_runtime_is_heap(const char *name, size_t length)
{
	/* The last one is what the toolkit's library, linked into a cubin, leaves to the driver. */
	static const char *const beginnings[] = {
		"cudaLaunchDevice", "cudaCDP", "__cudaCDP", "__cuda_syscall_cnp"};

	for (unsigned i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (begins(name, length, beginnings[i]))
			return true;
	return is(name, length, "malloc");
}

bool device_runtime_is_printf(const char *name, size_t length)
{
	return is(name, length, "vprintf");
}

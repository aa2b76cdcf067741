/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as PTX: nothing behind their end is read, what stands before or behind an accepted text changes
 * nothing that it should not, and two texts in one declare what both do.
 */
#include <string.h>

#include "policy/ptx.h"
#include "tests/fuzz/fuzz.h"

static bool is_same(const struct ptx *a, const struct ptx *b)
{
	return a->device_bytes == b->device_bytes && a->managed_bytes == b->managed_bytes &&
	       a->has_heap == b->has_heap && a->has_printf == b->has_printf;
}

static uint64_t twice(uint64_t bytes)
{
	return bytes > UINT64_MAX / 2 ? UINT64_MAX : bytes * 2;
}

/* The text between two others, read to its end or to a zero. */
static bool read_between(const char *before, const uint8_t *bytes, size_t size, const char *after,
	struct ptx *ret_ptx)
{
	size_t first = strlen(before), last = strlen(after);
	char *text = malloc(first + size + last + 1);
	struct ptx again;
	bool is_read;

	FUZZ_CHECK(text);
	memcpy(text, before, first);
	memcpy(text + first, bytes, size);
	memcpy(text + first + size, after, last + 1);
	is_read = ptx_read(text, first + size + last, ret_ptx);
	if (is_read) {
		FUZZ_CHECK(ptx_read(text, PTX_TO_ZERO, &again));
		FUZZ_CHECK(is_same(ret_ptx, &again));
	}
	FUZZ_CHECK(!ret_ptx->managed_bytes || ptx_names_managed(text, PTX_TO_ZERO));
	free(text);
	return is_read;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct ptx ptx, other;
	size_t length;
	char *all;

	/* A mark of UTF-8 stands at the beginning alone. */
	if (!ptx_read((const char *)bytes, size, &ptx) || bytes[0] == 0xef)
		return 0;
	length = strnlen((const char *)bytes, size);
	FUZZ_CHECK(read_between("/* a */ // b\n\t", bytes, length, "\n/* c */", &other));
	FUZZ_CHECK(is_same(&ptx, &other));
	if (!read_between("", bytes, length, "\n.global .b8 more[100];\n", &other))
		FUZZ_CHECK(!"a declaration behind it");
	FUZZ_CHECK(
		other.device_bytes == UINT64_MAX || other.device_bytes == ptx.device_bytes + 100);
	all = malloc(2 * length + 2);
	FUZZ_CHECK(all);
	memcpy(all, bytes, length);
	all[length] = '\n';
	memcpy(all + length + 1, bytes, length);
	all[2 * length + 1] = '\0';
	FUZZ_CHECK(ptx_read(all, PTX_TO_ZERO, &other));
	FUZZ_CHECK(other.device_bytes == twice(ptx.device_bytes));
	FUZZ_CHECK(other.managed_bytes == twice(ptx.managed_bytes));
	free(all);
	return 0;
}

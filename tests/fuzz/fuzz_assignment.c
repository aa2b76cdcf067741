/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the annotation of assigned devices: what is accepted means the same when it is written out and read
 * again, and each slot is that of one container or refused.
 */
#include <errno.h>
#include <string.h>

#include "kube/assignment.h"
#include "tests/fuzz/fuzz.h"

static bool is_same(const struct assignment *a, const struct assignment *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (a->slots[i].count != b->slots[i].count)
			return false;
		for (size_t k = 0; k < a->slots[i].count; k++) {
			const struct assignment_device *x = &a->slots[i].devices[k];
			const struct assignment_device *y = &b->slots[i].devices[k];

			if (strcmp(x->uuid, y->uuid) != 0 || strcmp(x->part, y->part) != 0 ||
				strcmp(x->vendor, y->vendor) != 0 ||
				x->memory_mib != y->memory_mib ||
				x->cores_percent != y->cores_percent)
				return false;
		}
	}
	return true;
}

static void check_devices(const struct assignment *a)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < a->slots[i].count; k++) {
			const struct assignment_device *d = &a->slots[i].devices[k];

			FUZZ_CHECK(d->uuid[0] && d->memory_mib >= 0 && d->cores_percent >= 0);
			FUZZ_CHECK(!strpbrk(d->uuid, ",:;[] \n"));
			FUZZ_CHECK(!strpbrk(d->vendor, ",:;[]\n"));
		}
}

/* Containers as the text's own bytes would have them. */
static void check_match(const struct assignment *a, const uint8_t *bytes, size_t size)
{
	struct assignment_need needs[16];
	size_t *containers = calloc(a->count + 1, sizeof(*containers));
	size_t count = size < 16 ? size : 16;
	struct err err = ERR_NULL;
	int r;

	FUZZ_CHECK(containers);
	for (size_t i = 0; i < count; i++)
		needs[i] = (struct assignment_need){bytes[i] % 3, bytes[i] & 64};
	r = assignment_match(a, needs, count, containers, &err);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && err.text[0]));
	for (size_t i = 0; r == 0 && i < a->count; i++)
		if (a->slots[i].count) {
			FUZZ_CHECK(containers[i] < count);
			FUZZ_CHECK((size_t)needs[containers[i]].count == a->slots[i].count);
			for (size_t k = 0; k < i; k++)
				FUZZ_CHECK(!a->slots[k].count || containers[k] < containers[i]);
		}
	free(containers);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct assignment a = ASSIGNMENT_NULL, again = ASSIGNMENT_NULL;
	char *text = malloc(size + 1), *written = NULL, *twice = NULL;
	struct err err = ERR_NULL;
	size_t slot = 0;
	int r;

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	text[size] = '\0';
	r = assignment_decode(text, &a, &err);
	free(text);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && err.text[0] && !a.slots));
	for (const char *c = err.text; *c; c++)
		FUZZ_CHECK(*c >= ' ' && *c < 0x7f);
	if (r)
		return 0;
	check_devices(&a);
	check_match(&a, bytes, size);
	FUZZ_CHECK(assignment_encode(&a, &written) == 0);
	FUZZ_CHECK(assignment_decode(written, &again, &err) == 0);
	FUZZ_CHECK(is_same(&a, &again));
	FUZZ_CHECK(assignment_encode(&again, &twice) == 0 && strcmp(written, twice) == 0);
	for (size_t left = a.count; assignment_next(&a, &slot); left--) {
		FUZZ_CHECK(left && slot < a.count && a.slots[slot].count);
		assignment_consume(&a, slot);
	}
	assignment_deinit(&again);
	assignment_deinit(&a);
	free(written);
	free(twice);
	return 0;
}

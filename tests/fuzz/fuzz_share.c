/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a share file: what is accepted means the same when it is written out and read again,
 * and the beginning of an accepted file is refused or means the same.
 */
#include <errno.h>
#include <string.h>

#include "policy/share.h"
#include "tests/fuzz/fuzz.h"

static int parse(const uint8_t *bytes, size_t size, struct share *ret_share)
{
	struct share_fault fault = {.why = NULL};
	char *text = malloc(size + 1);
	int r;

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	text[size] = '\0';
	r = share_parse(text, size, ret_share, &fault);
	FUZZ_CHECK(r == 0 || r == -EINVAL);
	FUZZ_CHECK((r == 0) == (fault.why == NULL));
	free(text);
	return r;
}

static bool is_same(const struct share *a, const struct share *b)
{
	if (strcmp(a->slice, b->slice) != 0 || strcmp(a->region, b->region) != 0 ||
		strcmp(a->turns, b->turns) != 0 || a->priority != b->priority ||
		a->is_suspended != b->is_suspended || a->device_count != b->device_count)
		return false;
	for (unsigned i = 0; i < a->device_count; i++)
		if (strcmp(a->devices[i].uuid, b->devices[i].uuid) != 0 ||
			a->devices[i].memory_bytes != b->devices[i].memory_bytes ||
			memcmp(&a->devices[i].compute, &b->devices[i].compute,
				sizeof(a->devices[i].compute)) != 0)
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char text[SHARE_FILE_BYTES];
	struct share share, again;
	size_t length;

	if (parse(bytes, size, &share) != 0)
		return 0;
	FUZZ_CHECK(share.device_count <= SHARE_DEVICES);
	FUZZ_CHECK(!*share.slice || share_name_is_valid(share.slice));
	FUZZ_CHECK(!*share.region || share.region[0] == '/');
	FUZZ_CHECK(!*share.turns || share.turns[0] == '/');
	FUZZ_CHECK(share.priority <= SHARE_MAX_PRIORITY);
	for (unsigned i = 0; i < share.device_count; i++) {
		FUZZ_CHECK(share.devices[i].compute.cap_permille <= SHARE_WHOLE_PERMILLE);
		FUZZ_CHECK(share.devices[i].compute.cap_permille >=
			   share.devices[i].compute.cores_permille);
		FUZZ_CHECK(share.devices[i].compute.weight <= SHARE_MAX_WEIGHT);
	}
	for (unsigned i = 0; i < share.device_count; i++)
		FUZZ_CHECK(share_memory_bytes(&share, share.devices[i].uuid) ==
			   share.devices[i].memory_bytes);
	FUZZ_CHECK(share_format(&share, text, sizeof(text), &length) == 0);
	FUZZ_CHECK(parse((const uint8_t *)text, length, &again) == 0);
	FUZZ_CHECK(is_same(&share, &again));
	for (size_t shorter = 0; shorter < size; shorter++)
		if (parse(bytes, shorter, &again) == 0)
			FUZZ_CHECK(is_same(&share, &again));
	return 0;
}

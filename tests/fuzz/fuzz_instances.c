/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the annotation of reserved instances: what is accepted means the same when it is written out and read again. */
#include <errno.h>
#include <string.h>

#include "kube/instances.h"
#include "tests/fuzz/fuzz.h"

static bool is_same(const struct instances *a, const struct instances *b)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct instance *x = &a->at[i], *y = &b->at[i];

		if (x->container != y->container || x->device != y->device ||
			strcmp(x->gpu, y->gpu) != 0 || strcmp(x->profile, y->profile) != 0 ||
			x->start != y->start || x->size != y->size || x->is_given != y->is_given ||
			strcmp(x->uuid, y->uuid) != 0 || x->instance != y->instance ||
			x->compute != y->compute)
			return false;
	}
	return a->count == b->count;
}

static void check_entries(const struct instances *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct instance *one = &list->at[i];

		FUZZ_CHECK(one->gpu[0] && one->profile[0] && one->size);
		FUZZ_CHECK(!strpbrk(one->gpu, ",/ \n") && !strpbrk(one->uuid, ",/ \n"));
		FUZZ_CHECK(one->start < 256 && one->size < 256);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct instances list = INSTANCES_NULL, again = INSTANCES_NULL, some = INSTANCES_NULL;
	char *text = malloc(size + 1), *written = NULL;
	struct err err = ERR_NULL;
	int r;

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	text[size] = '\0';
	r = instances_decode(text, &list, &err);
	FUZZ_CHECK(instances_decode_some(text, &some) == 0);
	free(text);
	check_entries(&some);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && err.text[0] && !list.at));
	FUZZ_CHECK(r || is_same(&list, &some));
	instances_deinit(&some);
	if (r)
		return 0;
	FUZZ_CHECK(instances_encode(&list, &written) == 0);
	FUZZ_CHECK(instances_decode(written, &again, &err) == 0);
	FUZZ_CHECK(is_same(&list, &again));
	instances_deinit(&again);
	instances_deinit(&list);
	free(written);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as what the API server sends: without lists that nobody reads it is what a reader of JSON makes of the whole text. */
#include <string.h>

#include "kube/prune.h"
#include "tests/fuzz/fuzz.h"

static const char *const unused[] = {"managedFields", "a", NULL};

static void empty(json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	json_array_foreach(value, i, item) empty(item);
	json_object_foreach(value, key, item)
	{
		if (json_is_array(item) && (!strcmp(key, unused[0]) || !strcmp(key, unused[1])))
			json_array_clear(item);
		empty(item);
	}
}

/* Of a text that is none, what is cut out may have been what was wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);
	json_t *whole, *pruned;

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	whole = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
	pruned = prune_load(text, size, unused);
	/* a key that is written with escapes may stay */
	empty(whole);
	empty(pruned);
	FUZZ_CHECK(!whole || json_equal(whole, pruned));
	json_decref(whole);
	json_decref(pruned);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a node's lock, and as a quantity: a lock has both names of its pod or none, and a number is read as it is written. */
#include <stdbool.h>
#include <string.h>

#include "kube/quantity.h"
#include "scheduler/nodelock.h"
#include "tests/fuzz/fuzz.h"

#define NOW_S	   1767323045
#define EXACT_MOST 999999999999999999 /* more digits are not read */

static void check_lock(const char *text)
{
	struct nodelock lock;

	if (!nodelock_parse(text, &lock)) {
		FUZZ_CHECK(!*text);
		return;
	}
	FUZZ_CHECK(strlen(lock.namespace) < sizeof(lock.namespace));
	FUZZ_CHECK(strlen(lock.name) < sizeof(lock.name));
	FUZZ_CHECK(!strpbrk(lock.name, ",") && !strpbrk(lock.namespace, ","));
	for (int64_t seen_s = 0; seen_s <= 1000; seen_s += 500)
		nodelock_judge(&lock, "n", NULL, NOW_S, seen_s, 300);
}

static void check_quantity(const char *text)
{
	char written[32];
	int64_t value, again;

	if (!quantity_parse(text, &value) || value > EXACT_MOST || value < -EXACT_MOST)
		return;
	snprintf(written, sizeof(written), "%lld", (long long)value);
	FUZZ_CHECK(quantity_parse(written, &again) && again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	text[size] = '\0';
	check_lock(text);
	check_quantity(text);
	free(text);
	return 0;
}

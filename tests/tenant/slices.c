/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of tenant tests: their share files, and what they hold by the books and in truth. */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "region/snapshot.h"

static uint64_t bytes_of(const char *quota)
{
	char *end;
	uint64_t n;

	if (!quota)
		return 0;
	if (strcmp(quota, "unlimited") == 0)
		return UINT64_MAX;
	n = strtoull(quota, &end, 10);
	return *end == 'g' ? n * GIB : *end == 'm' ? n * MIB : *end == 'k' ? n * KIB : n;
}

void slice_write(struct slice *slice, const char *text)
{
	char fresh[300];
	FILE *file;

	snprintf(fresh, sizeof(fresh), "%s.new", slice->share);
	file = fopen(fresh, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(fresh, slice->share), 0);
}

void slice_change(struct slice *slice, const char *first, const char *second)
{
	const char *const quotas[NODE_DEVICES] = {first, second};
	char text[1024];
	size_t used;

	used = (size_t)snprintf(text, sizeof(text), "vgpu-share 1\nslice %s\nregion %s\n%s\n",
		slice->name, slice->region, slice->terms ? slice->terms : "");
	for (int d = 0; d < NODE_DEVICES; d++) {
		uint64_t bytes = bytes_of(quotas[d]);

		if (bytes > slice->quota[d])
			slice->quota[d] = bytes;
		if (quotas[d])
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				"device %s memory %s\n", slice->node->uuid[d], quotas[d]);
	}
	snprintf(text + used, sizeof(text) - used, "end\n");
	slice_write(slice, text);
}

struct slice *slice_new_bare(struct node *node, const char *name, uint64_t first, uint64_t second)
{
	struct slice *slice = &node->slices[node->slice_count++];
	const char *folder = getenv("TENANT_REGIONS");
	char region[sizeof(slice->region)];

	assert_true(node->slice_count <= NODE_SLICES);
	slice->node = node;
	snprintf(slice->name, sizeof(slice->name), "%s", name);
	snprintf(region, sizeof(region), "%s/%s.region", node->dir, name);
	if (folder)
		snprintf(region, sizeof(region), "%s/%s-%s.region", folder,
			strrchr(node->dir, '/') + 1, name);
	memcpy(slice->region, region, sizeof(region));
	slice->quota[0] = first;
	slice->quota[1] = second;
	return slice;
}

struct slice *slice_new(struct node *node, const char *name, const char *first, const char *second)
{
	struct slice *slice = slice_new_bare(node, name, 0, 0);
	char share[sizeof(slice->share)];

	snprintf(share, sizeof(share), "%s/%s.share", node->dir, name);
	memcpy(slice->share, share, sizeof(share));
	slice_change(slice, first, second);
	return slice;
}

static struct machine_truth truth_of(const struct slice *slice, int device)
{
	struct machine_truth truth = {0};

	assert_int_equal(machine_read_truth(slice->node->machine, slice->name, device, &truth), 0);
	return truth;
}

uint64_t slice_truth(const struct slice *slice, int device)
{
	return truth_of(slice, device).held_bytes;
}

uint64_t slice_peak(const struct slice *slice, int device)
{
	return truth_of(slice, device).peak_held_bytes;
}

uint64_t slice_books(const struct slice *slice, int device)
{
	_cleanup_free_ struct snapshot *snapshot = malloc(sizeof(*snapshot));

	assert_non_null(snapshot);
	assert_int_equal(snapshot_read(slice->region, snapshot), 0);
	for (unsigned i = 0; i < snapshot->device_count; i++)
		if (strcmp(snapshot->devices[i].uuid, slice->node->uuid[device]) == 0)
			return snapshot->devices[i].used_bytes;
	return 0;
}

uint64_t slice_agreed(const struct slice *slice, int device)
{
	uint64_t truth = slice_truth(slice, device), books = slice_books(slice, device);

	if (truth == books + slice->slack_bytes)
		return books;
	/* Or the library has seen it, and rounded it up to its unit. */
	if (slice->slack_bytes && books >= truth && books - truth < 64 * KIB)
		return books;
	if (truth != books)
		print_message(
			"slice %s device %d: the driver gave %llu KiB, the books say %llu KiB\n",
			slice->name, device, (unsigned long long)(truth / KIB),
			(unsigned long long)(books / KIB));
	assert_true(truth == books);
	return books;
}

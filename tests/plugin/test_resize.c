/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes for slices of another size, in a cluster in memory, on a host. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "kube/wish.h"
#include "plugin/give.h"
#include "region/ledger.h"
#include "tests/plugin/living.h"
#include "tests/plugin/prepare_host.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define SLOT(mib) DEVICE_A ",NVIDIA," mib ",10:;"
#define MIB	  (UINT64_C(1) << 20)

static const struct inventory inventory = {
	.count = 1, .device = {{.uuid = DEVICE_A, .total_bytes = UINT64_C(80) << 30}}};
static struct giver giver = {.node = {.config = &town.config, .inventory = &inventory}};

static int begin_case(void **state)
{
	host_make();
	if (town_begin(state))
		return 1;
	town_kill_plugin();
	giver.settings = host.settings;
	town.giver = &giver;
	town.config.resizes_beyond_limits = true;
	town.config.memory_scaling = town.config.cores_scaling = 1;
	town_start_plugin();
	town_run(100);
	return 0;
}

static int end_case(void **state)
{
	int result = town_end(state);

	host_remove();
	return result;
}

static void set(const char *name, const char *key, const char *value)
{
	json_object_set_new(
		town_annotations(json_object_get(town.pods, name)), key, json_string(value));
}

static void wish(const char *name, const char *text)
{
	set(name, WISH_ANNOTATION, text);
	town_set_status(name, "Running");
}

/* One that runs with a slice of 1,000 MiB. */
static struct prepared begin(const char *name)
{
	struct share share = host_share(POD, "c0");
	struct prepare_request request = {.container = "c0", .share = &share};
	char given[512];

	town_bind(name, SLOT("1000"), (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	town_run(50);
	request.pod_uid = town_uid(name);
	share.devices[0].memory_bytes = 1000 * MIB;
	return host_prepare_as(&request);
}

static uint64_t share_mib(const struct prepared *prepared)
{
	char path[600], text[SHARE_FILE_BYTES];
	struct share_fault fault;
	struct share share;
	size_t length;

	snprintf(path, sizeof(path), "%s/share", prepared->share_folder);
	assert_int_equal(file_read(path, text, sizeof(text), &length), 0);
	assert_int_equal(share_parse(text, length, &share, &fault), 0);
	return share_memory_bytes(&share, DEVICE_A) / MIB;
}

/* What the API server has of two of the wishes is another than the plugin knows. */
static void wishes_that_fail_keep_no_other_back(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	unsigned before;

	for (int i = 0; i < 3; i++) {
		begin(names[i]);
		wish(names[i], "{\"c0\": {\"gpumem\": 999}}");
		if (i < 2)
			set(names[i], WISH_ANNOTATION, "{}");
	}
	before = town.calls;
	town_run(12000);
	assert_string_equal(town_annotation("c", ASSIGNMENT_ALLOCATED), SLOT("999"));
	assert_string_equal(town_annotation("a", ASSIGNMENT_ALLOCATED), SLOT("1000"));
	assert_in_range(town.calls - before, 3, 30);
}

/* It holds 600 MiB and a little. */
static int holder(int fd, void *region_file)
{
	struct region region = REGION_NULL;
	unsigned slot, device;

	if (region_open(region_file, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		region_device(&region, DEVICE_A, &device) != 0)
		return 1;
	ledger_charge_anyway(region.file, slot, device, ledger_units(600 * MIB + 1));
	child_say(fd, slot);
	child_hear(fd);
	return 0;
}

/* Else what it holds would be given to another pod. */
static void what_a_slice_holds_counts_until_it_is_given_back(void **state)
{
	struct prepared prepared = begin("a");
	struct child c = child_start(holder, prepared.region_file);

	assert_int_not_equal(child_hear(c.fd), UINT64_MAX);
	wish("a", "{\"c0\": {\"gpumem\": 100}}");
	town_run(50);
	/* a process may not have the share yet */
	assert_string_equal(town_annotation("a", ASSIGNMENT_ALLOCATED), SLOT("1000"));
	assert_int_equal(share_mib(&prepared), 100);
	town_run(12000);
	assert_string_equal(town_annotation("a", ASSIGNMENT_ALLOCATED), SLOT("601"));
	assert_int_equal(share_mib(&prepared), 100);
	child_kill(&c);
	town_run(12000);
	assert_string_equal(town_annotation("a", ASSIGNMENT_ALLOCATED), SLOT("100"));
	wish("a", "{\"c0\": {\"gpumem\": 1000}}");
	town_run(12000);
	assert_string_equal(town_annotation("a", ASSIGNMENT_ALLOCATED), SLOT("1000"));
	assert_int_equal(share_mib(&prepared), 1000);
}

/* Nobody can say what is held. */
static void books_that_cannot_be_read_give_nothing_back(void **state)
{
	struct prepared prepared = begin("a");

	wish("a", "{\"c0\": {\"gpumem\": 100, \"gpucores\": 5}}");
	town_run(50);
	assert_int_equal(truncate(prepared.region_file, 1), 0);
	town_run(12000);
	assert_string_equal(
		town_annotation("a", ASSIGNMENT_ALLOCATED), DEVICE_A ",NVIDIA,1000,5:;");
	assert_int_equal(share_mib(&prepared), 100);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_case, end_case)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wishes_that_fail_keep_no_other_back),
		TEST(what_a_slice_holds_counts_until_it_is_given_back),
		TEST(books_that_cannot_be_read_give_nothing_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

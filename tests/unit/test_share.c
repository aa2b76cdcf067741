/* SPDX-License-Identifier: Apache-2.0 */
/* The share file: its grammar, and that half a file is never taken for another share. */
#include "policy/share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cmocka_ready.h"

static const char whole[] = "# written by hand\n"
			    "vgpu-share 1\n"
			    "\n"
			    "slice training-a\n"
			    "region /run/vgpu/training-a/region\n"
			    "device GPU-b0f6c78f-1e2d-81bf-660c-1bac5b80b05c memory 8g\n"
			    "device GPU-11111111-2222-3333-4444-555555555555 memory unlimited\n"
			    "device * memory 2048\n"
			    "end\n";

/* A copy on the heap with nothing behind its ending zero, so that a sanitizer sees every overrun. */
static int parse(const char *text, size_t length, struct share *ret, struct share_fault *fault)
{
	char *copy = malloc(length + 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, text, length);
	copy[length] = '\0';
	r = share_parse(copy, length, ret, fault);
	free(copy);
	return r;
}

static void accept(const char *text, struct share *ret_share)
{
	struct share_fault fault = {.why = "none"};
	int r = parse(text, strlen(text), ret_share, &fault);

	if (r != 0)
		print_error("line %u: %s\n", fault.line, fault.why);
	assert_int_equal(r, 0);
}

/* Returns the line that is blamed. */
static unsigned refuse(const char *text)
{
	struct share_fault fault = {.line = 99};
	struct share share, before;

	memset(&share, 0x5a, sizeof(share));
	before = share;
	if (parse(text, strlen(text), &share, &fault) != -EINVAL)
		print_error("accepted: %s\n", text);
	assert_int_equal(parse(text, strlen(text), &share, &fault), -EINVAL);
	assert_memory_equal(&share, &before, sizeof(share));
	assert_non_null(fault.why);
	assert_true(strlen(fault.why) > 5);
	return fault.line;
}

/* One line between a right beginning and a right end; returns whether it was blamed. */
static bool refuses_line(const char *line)
{
	char text[2048];

	snprintf(text, sizeof(text), "vgpu-share 1\n%s\nend\n", line);
	return refuse(text) == 2;
}

static void a_whole_file_is_read(void **state)
{
	struct share s;

	accept(whole, &s);
	assert_string_equal(s.slice, "training-a");
	assert_string_equal(s.region, "/run/vgpu/training-a/region");
	assert_int_equal(s.device_count, 3);
	assert_string_equal(s.devices[0].uuid, "GPU-b0f6c78f-1e2d-81bf-660c-1bac5b80b05c");
	assert_int_equal(s.devices[0].memory_bytes, UINT64_C(8) << 30);
	assert_true(s.devices[1].memory_bytes == SHARE_UNLIMITED);
	assert_string_equal(s.devices[2].uuid, SHARE_ANY_DEVICE);
	assert_int_equal(s.devices[2].memory_bytes, 2048);
}

static void a_file_truncated_at_any_byte_is_refused(void **state)
{
	struct share_fault fault;
	struct share s;

	for (size_t length = 0; length < sizeof(whole) - 1; length++)
		assert_int_equal(parse(whole, length, &s, &fault), -EINVAL);
	assert_int_equal(parse(whole, sizeof(whole) - 1, &s, &fault), 0);
}

static void a_file_without_its_first_bytes_is_refused(void **state)
{
	const char *text = strstr(whole, "vgpu-share");
	struct share_fault fault;
	struct share s;

	assert_int_equal(parse(text, strlen(text), &s, &fault), 0);
	for (text++; *text; text++)
		assert_int_equal(parse(text, strlen(text), &s, &fault), -EINVAL);
}

static void a_zero_byte_anywhere_is_refused(void **state)
{
	char text[sizeof(whole)];
	struct share_fault fault;
	struct share s;

	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		memcpy(text, whole, sizeof(whole));
		text[i] = '\0';
		assert_int_equal(parse(text, sizeof(whole) - 1, &s, &fault), -EINVAL);
	}
	assert_int_equal(parse(whole, sizeof(whole), &s, &fault), -EINVAL);
}

static void the_smallest_share_grants_nothing(void **state)
{
	struct share s;

	accept("vgpu-share 1\nend\n", &s);
	assert_int_equal(s.device_count, 0);
	assert_string_equal(s.slice, "");
	assert_string_equal(s.region, "");
	assert_int_equal(share_memory_bytes(&s, "GPU-1"), 0);
}

static void white_space_and_comments_say_nothing(void **state)
{
	struct share s;

	accept("\n  # first\n\t vgpu-share \t 1 \r\n\r\n # device X memory 1\n"
	       "  device\tGPU-1   memory 1k\t\r\n end \n\n# behind the end\n \n",
		&s);
	assert_int_equal(s.device_count, 1);
	assert_int_equal(share_memory_bytes(&s, "GPU-1"), 1024);
}

static void the_first_line_must_name_a_known_version(void **state)
{
	assert_int_equal(refuse("end\n"), 1);
	assert_int_equal(refuse("device X memory 1g\nend\n"), 1);
	assert_int_equal(refuse("vgpu-share\nend\n"), 1);
	assert_int_equal(refuse("vgpu-share 2\nend\n"), 1);
	assert_int_equal(refuse("vgpu-share 01\nend\n"), 1);
	assert_int_equal(refuse("vgpu-share 1 2\nend\n"), 1);
	assert_int_equal(refuse("vgpu-share 1x\nend\n"), 1);
	assert_int_equal(refuse("VGPU-SHARE 1\nend\n"), 1);
	assert_int_equal(refuse("\xef\xbb\xbfvgpu-share 1\nend\n"), 1);
	assert_int_equal(refuse("vgpu-share 1\nvgpu-share 1\nend\n"), 2);
}

static void an_empty_file_is_refused(void **state)
{
	refuse("");
	refuse("\n");
	refuse("# nothing\n");
	refuse("vgpu-share 1\n");
}

static void nothing_may_stand_behind_the_end(void **state)
{
	assert_int_equal(refuse("vgpu-share 1\nend\ndevice X memory 1g\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nend\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nend\nx"), 3);
	refuse("vgpu-share 1\nend here\n");
	refuse("vgpu-share 1\nEND\n");
}

static void lines_that_are_none_are_refused(void **state)
{
	static const char *const wrong[] = {"device", "device X", "device X memory", "device X 8g",
		"device X memory 8g 9g", "device X memory 8g # a note", "device X Memory 8g",
		"device X cores 8", "devices X memory 8g", "slice", "slice a b", "region",
		"region /a b", "region a/b", "region ./a", "slice a/b", "slice .a", "slice ..",
		"slice a\x1b[2J", "slice \xc3\xa4", "memory 8g", "x", "a b c d e f g h i",
		"a b c d e f g h"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_true(refuses_line(wrong[i]));
}

static void a_quota_that_is_no_size_is_refused(void **state)
{
	static const char *const wrong[] = {"10XB", "1.5x", "-1", "+1", "0m", "g", "0x10",
		"Unlimited", "UNLIMITED", "unlimited8", "none", "18446744073709551616", "16777216t",
		"*"};
	char line[100];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(line, sizeof(line), "device X memory %s", wrong[i]);
		assert_true(refuses_line(line));
	}
}

static void a_device_may_be_granted_once(void **state)
{
	assert_int_equal(refuse("vgpu-share 1\ndevice X memory 1g\ndevice Y memory 1g\n"
				"device X memory 2g\nend\n"),
		4);
	assert_int_equal(refuse("vgpu-share 1\ndevice * memory 1g\ndevice * memory 1g\nend\n"), 3);
}

static void a_slice_has_one_name_and_one_region(void **state)
{
	assert_int_equal(refuse("vgpu-share 1\nslice a\nslice b\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nregion /a\nregion /b\nend\n"), 3);
}

static void sixteen_devices_fit_and_a_seventeenth_is_refused(void **state)
{
	char text[4096];
	struct share s;
	size_t used;

	for (int count = 16; count <= 17; count++) {
		used = (size_t)snprintf(text, sizeof(text), "vgpu-share 1\n");
		for (int i = 0; i < count; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				"device GPU-%d memory %dm\n", i, i + 1);
		snprintf(text + used, sizeof(text) - used, "end\n");
		if (count == 17) {
			assert_int_equal(refuse(text), 18);
			continue;
		}
		accept(text, &s);
		assert_int_equal(s.device_count, SHARE_DEVICES);
		assert_int_equal(share_memory_bytes(&s, "GPU-15"), UINT64_C(16) << 20);
	}
}

static void words_that_do_not_fit_are_refused(void **state)
{
	char word[600], line[700];
	struct share s;

	memset(word, 'a', sizeof(word));
	word[SHARE_UUID_BYTES] = '\0';
	snprintf(line, sizeof(line), "device %s memory 1g", word);
	assert_true(refuses_line(line));
	word[SHARE_UUID_BYTES - 1] = '\0';
	snprintf(line, sizeof(line), "vgpu-share 1\ndevice %s memory 1g\nend\n", word);
	accept(line, &s);
	assert_string_equal(s.devices[0].uuid, word);

	memset(word, 'a', sizeof(word));
	word[SHARE_NAME_BYTES] = '\0';
	snprintf(line, sizeof(line), "slice %s", word);
	assert_true(refuses_line(line));
	word[SHARE_NAME_BYTES - 1] = '\0';
	snprintf(line, sizeof(line), "vgpu-share 1\nslice %s\nend\n", word);
	accept(line, &s);
	assert_string_equal(s.slice, word);

	memset(word, 'a', sizeof(word));
	word[0] = '/';
	word[SHARE_PATH_BYTES] = '\0';
	snprintf(line, sizeof(line), "region %s", word);
	assert_true(refuses_line(line));
	word[SHARE_PATH_BYTES - 1] = '\0';
	snprintf(line, sizeof(line), "vgpu-share 1\nregion %s\nend\n", word);
	accept(line, &s);
	assert_string_equal(s.region, word);

	memset(word, 'a', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	snprintf(line, sizeof(line), "# %s", word);
	assert_true(refuses_line(line));
}

static void a_device_without_a_line_has_the_wildcards_quota_or_none(void **state)
{
	struct share s;

	accept("vgpu-share 1\ndevice * memory 2g\ndevice X memory 0\ndevice Y memory "
	       "unlimited\nend\n",
		&s);
	assert_int_equal(share_memory_bytes(&s, "X"), 0);
	assert_true(share_memory_bytes(&s, "Y") == SHARE_UNLIMITED);
	assert_int_equal(share_memory_bytes(&s, "Z"), UINT64_C(2) << 30);
	assert_int_equal(share_memory_bytes(&s, "x"), UINT64_C(2) << 30);
	accept("vgpu-share 1\ndevice X memory 1g\nend\n", &s);
	assert_int_equal(share_memory_bytes(&s, "Z"), 0);
	assert_int_equal(share_memory_bytes(&s, ""), 0);
}

static void the_two_names_of_a_mig_instance_are_one_device(void **state)
{
	struct share s;

	accept("vgpu-share 1\ndevice MIG-a memory 1g\ndevice GPU-b memory 2g\nend\n", &s);
	assert_int_equal(share_memory_bytes(&s, "MIG-a"), UINT64_C(1) << 30);
	assert_int_equal(share_memory_bytes(&s, "GPU-a"), UINT64_C(1) << 30);
	assert_int_equal(share_memory_bytes(&s, "MIG-b"), UINT64_C(2) << 30);
	assert_int_equal(share_memory_bytes(&s, "c"), 0);
	/* which of the two quotas holds would be a guess */
	assert_int_equal(
		refuse("vgpu-share 1\ndevice MIG-a memory 1g\ndevice GPU-a memory 2g\nend\n"), 3);
}

static void what_is_formatted_is_parsed_to_the_same(void **state)
{
	char text[SHARE_FILE_BYTES], again[SHARE_FILE_BYTES];
	struct share before = {.device_count = 0}, after;
	size_t length, length_again;

	strcpy(before.slice, "training-a");
	memset(before.region, 'r', sizeof(before.region) - 1);
	before.region[0] = '/';
	for (unsigned i = 0; i < SHARE_DEVICES; i++) {
		struct share_device *d = &before.devices[before.device_count++];

		memset(d->uuid, 'u', sizeof(d->uuid) - 1);
		d->uuid[0] = (char)('a' + i);
		d->memory_bytes = i == 0 ? 0 : i == 1 ? SHARE_UNLIMITED : SHARE_UNLIMITED - i;
	}
	memset(before.devices[3].uuid, 0, sizeof(before.devices[3].uuid));
	before.devices[3].uuid[0] = SHARE_ANY_DEVICE[0];
	assert_int_equal(share_format(&before, text, sizeof(text), &length), 0);
	assert_int_equal(length, strlen(text));
	accept(text, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(share_format(&after, again, sizeof(again), &length_again), 0);
	assert_string_equal(text, again);
}

static void a_share_that_does_not_fit_is_not_half_written(void **state)
{
	char text[SHARE_FILE_BYTES];
	size_t length, untouched = 99;
	struct share s;

	accept(whole, &s);
	assert_int_equal(share_format(&s, text, sizeof(text), &length), 0);
	for (size_t size = 0; size <= length; size++) {
		char *buffer = malloc(size + !size);

		assert_non_null(buffer);
		assert_int_equal(share_format(&s, buffer, size, &untouched), -ENOSPC);
		free(buffer);
	}
	assert_int_equal(untouched, 99);
	assert_int_equal(share_format(&s, text, length + 1, &length), 0);
}

static void a_slices_name_is_safe_as_a_file_name(void **state)
{
	static const char *const wrong[] = {"", ".", "..", ".a", "a/b", "a b", "a\n", "a*",
		"\xc3\xa4", "a\x7f", "~", "a:b",
		"0123456789012345678901234567890123456789012345678901234567890123"};
	static const char *const right[] = {"a", "A-1_b.c", "-a", "_", "a.",
		"012345678901234567890123456789012345678901234567890123456789012"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(share_name_is_valid(wrong[i]));
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		assert_true(share_name_is_valid(right[i]));
}

/* The terms of device X behind its memory, in a whole file. */
static struct share_compute compute_of(const char *terms)
{
	char text[400];
	struct share s;

	snprintf(text, sizeof(text), "vgpu-share 1\ndevice X memory 8g %s\nend\n", terms);
	accept(text, &s);
	return s.devices[0].compute;
}

static void compute_terms_are_read_in_any_order(void **state)
{
	struct share_compute c = compute_of("cores 30 cap 50 weight 200");

	assert_int_equal(c.cores_permille, 300);
	assert_int_equal(c.cap_permille, 500);
	assert_int_equal(c.weight, 200);
	c = compute_of("weight 10000 cap 12.5 cores 0.1");
	assert_int_equal(c.cores_permille, 1);
	assert_int_equal(c.cap_permille, 125);
	assert_int_equal(c.weight, 10000);
}

static void cores_alone_are_a_hard_limit_and_nothing_is_none(void **state)
{
	struct share_compute c = compute_of("cores 30");

	assert_int_equal(c.cores_permille, 300);
	assert_int_equal(c.cap_permille, 300);
	assert_int_equal(c.weight, 0);
	c = compute_of("cap 40");
	assert_int_equal(c.cores_permille, 0);
	assert_int_equal(c.cap_permille, 400);
	c = compute_of("cores 100 cap 100");
	assert_int_equal(c.cap_permille, SHARE_WHOLE_PERMILLE);
	c = compute_of("");
	assert_int_equal(c.cores_permille, 0);
	assert_int_equal(c.cap_permille, 0);
}

static void compute_terms_that_are_none_are_refused(void **state)
{
	static const char *const wrong[] = {"cores", "cores x", "cores 0", "cores 0.0", "cores -1",
		"cores +1", "cores 100.1", "cores 101", "cores 1000", "cores 30%", "cores 3.14",
		"cores .5", "cores 5.", "cores 5.x", "cores 1e1", "cores 0x10", "cores 1,5",
		"cores 99999999999999999999", "cap 0", "cap 101", "cap", "cores 50 cap 49.9",
		"cap 10 cores 20", "weight 0", "weight 10001", "weight 1.5", "weight -1", "weight",
		"weight 99999999999999999999", "cores 1 cores 1", "cap 1 cap 1",
		"weight 1 weight 1", "cores 30 cap", "Cores 30", "core 30", "memory 1g",
		"cores 10 cap 20 weight 30 cores 40", "suspended", "cores 30 # a note"};
	char line[200];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(line, sizeof(line), "device X memory 8g %s", wrong[i]);
		assert_true(refuses_line(line));
	}
	assert_true(refuses_line("device X cores 30 memory 8g"));
}

static void the_slices_own_compute_lines_are_read_once(void **state)
{
	struct share s;

	accept("vgpu-share 1\nturns /run/vgpu-turns\nmps /run/mps\npriority 0\nsuspended\nend\n",
		&s);
	assert_string_equal(s.mps, "/run/mps");
	assert_string_equal(s.turns, "/run/vgpu-turns");
	assert_int_equal(s.priority, 0);
	assert_true(s.is_suspended);
	accept("vgpu-share 1\nend\n", &s);
	assert_string_equal(s.turns, "");
	assert_string_equal(s.mps, "");
	assert_int_equal(s.priority, SHARE_DEFAULT_PRIORITY);
	assert_false(s.is_suspended);
	assert_false(s.has_no_exports);
	assert_false(s.imports_any);
	assert_int_equal(refuse("vgpu-share 1\npriority 1\npriority 1\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nsuspended\nsuspended\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nburst 5\nburst 5\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nexports none\nexports none\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nimports any\nimports any\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nturns /a\nturns /b\nend\n"), 3);
	assert_int_equal(refuse("vgpu-share 1\nmps /a\nmps /a\nend\n"), 3);
}

static void lines_of_compute_that_are_none_are_refused(void **state)
{
	static const char *const wrong[] = {"priority", "priority 10", "priority -1",
		"priority 1.0", "priority x", "priority 1 2", "priority 99999999999999999999",
		"suspended 1", "suspended yes", "Suspended", "turns", "turns a", "turns ./a",
		"turns /a /b", "mps", "mps a", "mps /a /b", "cores 30", "weight 100", "burst",
		"burst 0", "burst 1001", "burst -1", "burst 1.5", "burst 10ms", "burst 1 2",
		"exports", "exports all", "exports none none", "imports", "imports none",
		"imports own", "imports any any"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_true(refuses_line(wrong[i]));
}

static void compute_terms_survive_being_written_and_read(void **state)
{
	static const struct share_compute terms[] = {{0, 0, 0}, {300, 300, 0}, {300, 500, 7},
		{1, 1000, 10000}, {0, 125, 0}, {0, 0, 5}, {1000, 1000, 1}};
	struct share before = {.priority = 0,
			     .burst_ms = 40,
			     .is_suspended = true,
			     .has_no_exports = true,
			     .imports_any = true,
			     .turns = "/t",
			     .mps = "/m"},
		     after;
	char text[SHARE_FILE_BYTES];
	size_t length;

	for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
		snprintf(before.devices[i].uuid, SHARE_UUID_BYTES, "GPU-%zu", i);
		before.devices[before.device_count++].compute = terms[i];
	}
	assert_int_equal(share_format(&before, text, sizeof(text), &length), 0);
	accept(text, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void cores_without_a_cap_are_written_as_a_cap_of_all(void **state)
{
	struct share before = {.device_count = 1}, after;
	char text[SHARE_FILE_BYTES];
	size_t length;

	strcpy(before.devices[0].uuid, "X");
	before.devices[0].compute.cores_permille = 305;
	assert_int_equal(share_format(&before, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, " cores 30.5 cap 100\n"));
	accept(text, &after);
	assert_int_equal(after.devices[0].compute.cap_permille, SHARE_WHOLE_PERMILLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(a_file_truncated_at_any_byte_is_refused),
		cmocka_unit_test(a_file_without_its_first_bytes_is_refused),
		cmocka_unit_test(a_zero_byte_anywhere_is_refused),
		cmocka_unit_test(the_smallest_share_grants_nothing),
		cmocka_unit_test(white_space_and_comments_say_nothing),
		cmocka_unit_test(the_first_line_must_name_a_known_version),
		cmocka_unit_test(an_empty_file_is_refused),
		cmocka_unit_test(nothing_may_stand_behind_the_end),
		cmocka_unit_test(lines_that_are_none_are_refused),
		cmocka_unit_test(a_quota_that_is_no_size_is_refused),
		cmocka_unit_test(a_device_may_be_granted_once),
		cmocka_unit_test(a_slice_has_one_name_and_one_region),
		cmocka_unit_test(sixteen_devices_fit_and_a_seventeenth_is_refused),
		cmocka_unit_test(words_that_do_not_fit_are_refused),
		cmocka_unit_test(a_device_without_a_line_has_the_wildcards_quota_or_none),
		cmocka_unit_test(the_two_names_of_a_mig_instance_are_one_device),
		cmocka_unit_test(what_is_formatted_is_parsed_to_the_same),
		cmocka_unit_test(a_share_that_does_not_fit_is_not_half_written),
		cmocka_unit_test(a_slices_name_is_safe_as_a_file_name),
		cmocka_unit_test(compute_terms_are_read_in_any_order),
		cmocka_unit_test(cores_alone_are_a_hard_limit_and_nothing_is_none),
		cmocka_unit_test(compute_terms_that_are_none_are_refused),
		cmocka_unit_test(the_slices_own_compute_lines_are_read_once),
		cmocka_unit_test(lines_of_compute_that_are_none_are_refused),
		cmocka_unit_test(compute_terms_survive_being_written_and_read),
		cmocka_unit_test(cores_without_a_cap_are_written_as_a_cap_of_all),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}

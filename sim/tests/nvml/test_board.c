/* SPDX-License-Identifier: Apache-2.0 */
/* Board files: what is built in, and what a wrong file is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sim/machine/board.h"
#include "sim/tests/nvml/scratch.h"

#define NAMES "h200x2, h200, h200x8, h200nvlx4, h100, h100x8, a100-40, a100-80, a100x16, l4x4, t4"

static void every_built_in_board_loads(void **state)
{
	struct board board;
	char why[256] = "";
	unsigned int i;

	for (i = 0; board_builtin_name(i); i++) {
		assert_int_equal(board_load(board_builtin_name(i), &board, why, sizeof(why)), 0);
		assert_string_equal(board.name, board_builtin_name(i));
		assert_in_range(board.device_count, 1, BOARD_DEVICES_MAX);
	}
	assert_int_equal(i, 11);
	assert_null(board_builtin_text(i));
}

static void the_default_board_is_two_h200_as_measured(void **state)
{
	struct board board;

	assert_int_equal(board_load(BOARD_DEFAULT, &board, NULL, 0), 0);
	assert_string_equal(board.device_name, "NVIDIA H200");
	assert_int_equal(board.device_count, 2);
	assert_true(board.total_bytes == 150109880320);
	assert_true(board.total_bytes + board.reserved_bytes == 150754820096);
	assert_true(board.context_bytes == 518ull << 20);
	/* cuMemGetInfo after the first context: free was 149557477376. */
	assert_true(board.total_bytes - board.init_bytes - board.context_bytes -
			    board.context_extra_bytes ==
		    149557477376);
	assert_true(board.chunk_bytes == 2 << 20);
	assert_true(board.small_max_bytes == 1 << 20);
	assert_true(board.pool_step_bytes == 32 << 20);
}

/* The boards are put in by the assembler: a build that missed a change of the files fails here. */
static void the_built_in_texts_are_the_files(void **state)
{
	const char *folder = getenv("VGPU_TEST_BOARDS");

	if (!folder)
		skip();
	for (unsigned int i = 0; board_builtin_name(i); i++) {
		_cleanup_file_ FILE *file = NULL;
		char path[4096], text[8192];
		size_t size;

		snprintf(path, sizeof(path), "%s/%s.board", folder, board_builtin_name(i));
		file = fopen(path, "re");
		assert_non_null(file);
		size = fread(text, 1, sizeof(text) - 1, file);
		text[size] = '\0';
		assert_string_equal(text, board_builtin_text(i));
	}
}

static void devices_have_uuids_serials_and_places_of_their_own(void **state)
{
	uint8_t a[16], b[16];
	unsigned int bus_a, slot_a, bus_b, slot_b;
	struct board board;

	assert_int_equal(board_load("h200x8", &board, NULL, 0), 0);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < i; j++) {
			board_uuid(&board, i, a);
			board_uuid(&board, j, b);
			assert_memory_not_equal(a, b, 16);
			assert_true(board_serial(&board, i) != board_serial(&board, j));
			board_pci(&board, i, &bus_a, &slot_a);
			board_pci(&board, j, &bus_b, &slot_b);
			assert_true((bus_a << 8 | slot_a) > (bus_b << 8 | slot_b));
		}
	board_uuid(&board, 0, a);
	board.uuid_seed++;
	board_uuid(&board, 0, b);
	assert_memory_not_equal(a, b, 16);
}

static void a_file_may_start_from_a_built_in_board(void **state)
{
	struct board board;
	char why[256] = "";

	assert_int_equal(board_parse("my.board",
				 "# mine\nbase = t4\n\n  device_count=4 # four\n"
				 "total_bytes = 8 GiB\nuuid_seed = 0xff\n",
				 &board, why, sizeof(why)),
		0);
	assert_string_equal(board.name, "my");
	assert_string_equal(board.device_name, "Tesla T4");
	assert_int_equal(board.device_count, 4);
	assert_true(board.total_bytes == 8ull << 30);
	assert_true(board.uuid_seed == 255);
}

static void a_wrong_line_is_named_with_what_would_be_right(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"base = t4\nsm_cout = 3\n", "x.board:2: sm_cout = 3: there is no key 'sm_cout'; "
					     "the nearest is 'sm_count'"},
		{"base = t4\nsm_count = many\n", "x.board:2: sm_count = many: not right; it must "
						 "be a whole number from 1 to "
						 "1024"},
		{"base = t4\n\nsm_count = 0\n", "x.board:3: sm_count = 0: not right; it must be a "
						"whole number from 1 to 1024"},
		{"base = t4\nsm_count = 3 MiB\n", "x.board:2: sm_count = 3 MiB: not right; it must "
						  "be a whole number from 1 to "
						  "1024"},
		{"base = t4\nl2_bytes = 3MB\n", "x.board:2: l2_bytes = 3MB: not right; it must be "
						"a size from 0 to 4294967296 "
						"bytes, such as 2097152 or 2MiB"},
		{"base = t4\nl2_bytes = 99999999999999999999\n",
			"x.board:2: l2_bytes = 99999999999999999999: not right; it must be a size "
			"from "
			"0 to 4294967296 bytes, such as 2097152 or 2MiB"},
		{"base = t4\nvbios =\n",
			"x.board:2: vbios = : not right; it must be a text of 1 to 31 bytes"},
		{"base = t5\n", "x.board:1: base = t5: no such board is built in; one of these "
				"would be right: " NAMES},
		{"base = t4\nsm_count = 3\nsm_count = 4\n",
			"x.board:3: sm_count = 4: line 2 gives this key already"},
		{"base = t4\nsm_count = 3\nbase = h200\n",
			"x.board:3: base = h200: the base must stand before every other key"},
		{"hello\n", "x.board:1: 'hello' is not of the form key = value"},
		{"", "x.board: device_name is not given; it must be a text of 1 to 95 bytes (or "
		     "start "
		     "with base = h200x2)"},
		{"base = t4\nchunk_bytes = 3MiB\n",
			"x.board: chunk_bytes = 3145728: not right; it must be a power of two"},
		{"base = t4\ndevice_count = 16\npci_slot_first = 20\n",
			"x.board: pci_slot_step = 1: not right; slot 20 + 1 * 15 must be at most "
			"31"},
		{"base = t4\ncontext_bytes = 16GiB\n", "x.board: total_bytes = 15634268160: not "
						       "right; one context (context_bytes, "
						       "context_extra_bytes, init_bytes) must fit"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct board board = {.sm_count = -7};
		char why[256] = "";

		assert_int_equal(
			board_parse("x.board", wrong[i].text, &board, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, wrong[i].why);
		assert_int_equal(board.sm_count, -7);
	}
}

static void an_unknown_name_and_a_missing_file_are_told_apart(void **state)
{
	struct board board;
	char why[256] = "";

	assert_int_equal(board_load("h300", &board, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "no board 'h300' is built in; there are " NAMES " (a "
				 "file needs a '/' or the ending .board)");
	assert_int_equal(board_load("/nowhere/h300.board", &board, why, sizeof(why)), -ENOENT);
	assert_string_equal(
		why, "/nowhere/h300.board: cannot be opened: No such file or directory");
	assert_int_equal(board_load("h300", &board, NULL, 0), -ENOENT);
}

static void a_file_that_is_no_text_is_refused(void **state)
{
	struct board board;
	char why[256] = "";
	FILE *file;

	scratch_begin(BOARD_DEFAULT);
	file = fopen(scratch_path("b.board"), "we");
	assert_non_null(file);
	fwrite("a = \0b", 1, 6, file);
	fclose(file);
	assert_int_equal(board_load(scratch_path("b.board"), &board, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "b.board: not a board file: too long, or not text"));
	scratch_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_built_in_board_loads),
		cmocka_unit_test(the_default_board_is_two_h200_as_measured),
		cmocka_unit_test(the_built_in_texts_are_the_files),
		cmocka_unit_test(devices_have_uuids_serials_and_places_of_their_own),
		cmocka_unit_test(a_file_may_start_from_a_built_in_board),
		cmocka_unit_test(a_wrong_line_is_named_with_what_would_be_right),
		cmocka_unit_test(an_unknown_name_and_a_missing_file_are_told_apart),
		cmocka_unit_test(a_file_that_is_no_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

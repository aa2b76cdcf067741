/* SPDX-License-Identifier: Apache-2.0 */
/* The running program tells when a slice's last process has ended. The arguments are the program and a library to install. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/clock.h"
#include "region/ended.h"
#include "tests/plugin/living.h"
#include "tests/plugin/stage.h"
#include "tests/plugin/vectors.h"
#include "tests/unit/cmocka_ready.h"

#define SECOND_NS UINT64_C(1000000000)
#define UID	  "8f3c1f0e-2b7a-4a61-9d0f-000000000001"

static const char *program, *library;
static char region[STAGE_PATH_BYTES], share[STAGE_PATH_BYTES];

static uint64_t killed_ns;

/* The moment that the share's folder has for the slice. */
static uint64_t told_ns(void)
{
	struct file_identity id;

	return file_identify_path(region, &id) == 0 ? ended_read(share, id.device, id.inode) : 0;
}

static bool is_told(void)
{
	return told_ns() > killed_ns;
}

static void allocate(void)
{
	const char *id = VECTOR_GPU0 "-0";
	struct stage_answer answer;
	const V1beta1__Mount *folder;

	stage_bind("p", UID, VECTOR_GPU0 ",NVIDIA,3000,30:;",
		"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"3000\",\"nvidia.com/"
		"gpucores\":\"30\"}");
	stage_tell();
	stage_allocate(&id, 1, &answer);
	if (answer.status)
		fail_msg("%s", answer.words);
	folder = stage_mount(&answer, "/etc/vgpu");
	assert_non_null(folder);
	snprintf(share, sizeof(share), "%s/share", folder->host_path);
	folder = stage_mount(&answer, stage_env(&answer, "CUDA_DEVICE_MEMORY_SHARED_CACHE"));
	assert_non_null(folder);
	snprintf(region, sizeof(region), "%s", folder->host_path);
	stage_answer_free(&answer);
}

/* On a machine that does other things it takes longer now and then. */
static void an_end_is_told_within_a_second_or_two(void **state)
{
	uint64_t least_ns = UINT64_MAX;

	stage_start(NULL);
	allocate();
	for (unsigned i = 0; i < 5 && least_ns > 2 * SECOND_NS; i++) {
		struct child c = living_start(region);
		uint64_t before_ns = told_ns();

		stage_run(3000);
		assert_int_equal(told_ns(), before_ns);
		killed_ns = clock_now_ns();
		child_kill(&c);
		stage_await(is_told, 30);
		if (told_ns() - killed_ns < least_ns)
			least_ns = told_ns() - killed_ns;
	}
	assert_true(least_ns <= 2 * SECOND_NS);
}

static int begin(void **state)
{
	return stage_begin(state, program, library);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_end_is_told_within_a_second_or_two, begin, stage_end),
	};

	assert_true(argc == 3);
	program = argv[1];
	library = argv[2];
	return cmocka_run_group_tests_name("slice_ends", tests, NULL, NULL);
}

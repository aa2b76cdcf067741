/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for other threads' calls, while a checkpoint stops the process and not; the driver is the test's own. */
#include "tenant/driver/patience.h"

#include "tenant/driver/attach.h"
#include "tests/unit/cmocka_ready.h"

#define WAIT_NS UINT64_C(20000000)
#define REST_NS UINT64_C(10000000) /* as in patience.c */

struct cuda_driver cuda;

static CUprocessState its_state;
static CUresult answer;
static unsigned questions, stopped_questions; /* it is stopped for so many */

static CUresult get_state(int pid, CUprocessState *ret_state)
{
	assert_int_equal(pid, getpid());
	questions++;
	*ret_state = questions <= stopped_questions ? its_state : CU_PROCESS_STATE_RUNNING;
	return answer;
}

static int start(void **state)
{
	cuda = (struct cuda_driver){.cuCheckpointProcessGetState = get_state};
	its_state = CU_PROCESS_STATE_LOCKED;
	answer = CUDA_SUCCESS;
	questions = stopped_questions = 0;
	return 0;
}

/* How long a lock that nobody gives back is waited for. */
static uint64_t waited_ns(void)
{
	struct lock lock = LOCK_INIT;
	uint64_t begin_ns = clock_now_ns();

	lock_enter(&lock);
	assert_false(patience_lock(&lock, WAIT_NS));
	return clock_now_ns() - begin_ns;
}

static void what_does_not_return_is_waited_for_once(void **state)
{
	assert_in_range(waited_ns(), WAIT_NS, 50 * WAIT_NS);
	cuda.cuCheckpointProcessGetState = NULL;
	assert_in_range(waited_ns(), WAIT_NS, 50 * WAIT_NS);
}

static void while_it_is_stopped_nothing_counts(void **state)
{
	stopped_questions = 8;
	assert_true(waited_ns() >= 8 * REST_NS + WAIT_NS);
	questions = 0;
	its_state = CU_PROCESS_STATE_CHECKPOINTED;
	assert_true(waited_ns() >= 8 * REST_NS + WAIT_NS);
}

static void a_driver_that_does_not_tell_stops_nothing(void **state)
{
	stopped_questions = 1000;
	answer = CUDA_ERROR_NOT_SUPPORTED;
	assert_false(patience_is_stopped());
	answer = CUDA_SUCCESS;
	its_state = CU_PROCESS_STATE_FAILED;
	assert_false(patience_is_stopped());
	its_state = CU_PROCESS_STATE_LOCKED;
	assert_true(patience_is_stopped());
}

static void a_count_is_waited_for_in_the_same_way(void **state)
{
	struct patience patience = patience_begin(WAIT_NS);
	_Atomic uint32_t count = 0;

	assert_true(patience_wait_for_zero(&count, &patience));
	count = 1;
	assert_false(patience_wait_for_zero(&count, &patience));
	assert_true(questions > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_does_not_return_is_waited_for_once, start),
		cmocka_unit_test_setup(while_it_is_stopped_nothing_counts, start),
		cmocka_unit_test_setup(a_driver_that_does_not_tell_stops_nothing, start),
		cmocka_unit_test_setup(a_count_is_waited_for_in_the_same_way, start),
	};

	return cmocka_run_group_tests_name("patience", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The PID by which the driver lists this process: found when it is clear, and else not. */
#include "tenant/slice/own_pid.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tenant/slice/nvml.h"
#include "tests/unit/cmocka_ready.h"

#define MIB	      UINT64_C(0x100000)
#define CONTEXT	      (518 * MIB)
#define EXTRA	      UINT64_C(5767168) /* of a context, and shown for no process (H200) */
#define OTHERS_BYTES  (3000 * MIB)
#define OTHERS_PID    70000u
#define OUR_HOSTS_PID 70001u

/* What own_pid.c is linked with here, in place of the library's. */
struct state state;
static struct region_file file;
static struct process_rows rows;
static uint64_t used_bytes;
static int outcome;

int nvml_usage(const char *uuid, struct process_rows *ret_rows, uint64_t *ret_used_bytes)
{
	*ret_rows = rows;
	*ret_used_bytes = used_bytes;
	return outcome;
}

int nvml_processes(const char *uuid, struct process_rows *ret_rows)
{
	*ret_rows = rows;
	return outcome;
}

static const struct device device = {.uuid = "GPU-a"}, another = {.uuid = "GPU-b"};

static void list(unsigned pid, uint64_t bytes)
{
	rows.at[rows.count++] = (nvmlProcessInfo_t){.pid = pid, .usedGpuMemory = bytes};
}

static int begin(void **unused)
{
	memset(&file, 0, sizeof(file));
	state.region.file = &file;
	outcome = 0;
	rows.count = 0;
	used_bytes = OTHERS_BYTES;
	list(OTHERS_PID, OTHERS_BYTES);
	own_pid_reset_after_fork();
	return 0;
}

/* Whether the figure that is listed for our PID is taken for ours, as so much is in the books. */
static bool is_ours(uint64_t shown_bytes, uint64_t known_bytes)
{
	uint64_t bytes = 0;
	int r;

	for (unsigned i = 0; i < rows.count; i++)
		if (rows.at[i].pid == own_pid())
			rows.at[i].usedGpuMemory = shown_bytes;
	r = own_pid_memory_bytes("GPU-a", known_bytes, &bytes);
	assert_true(r == 0 ? bytes == shown_bytes : r == -ENOENT);
	return r == 0;
}

static int host_pid(void)
{
	return atomic_load(&file.hami.slots[0].host_pid);
}

/* Our context is made and shows as that, while the device's memory grows by so much. */
static void make_context(uint64_t shown, uint64_t grown, uint64_t known)
{
	own_pid_before_context(&device);
	list(OUR_HOSTS_PID, shown);
	used_bytes += grown;
	own_pid_after_context(&device, known);
}

static void our_own_pid_is_ours_unless_we_know_better(void **unused)
{
	assert_int_equal(own_pid(), getpid());
	own_pid_before_context(&device);
	list((unsigned)getpid(), CONTEXT);
	list(OUR_HOSTS_PID, CONTEXT);
	used_bytes += 2 * CONTEXT;
	own_pid_after_context(&device, CONTEXT);
	assert_int_equal(own_pid(), getpid());
	assert_int_equal(host_pid(), 0);
	assert_true(is_ours(0, 4000 * MIB));
}

static void a_new_pid_with_what_the_device_lost_is_ours(void **unused)
{
	make_context(CONTEXT, CONTEXT + EXTRA, 0);
	assert_int_equal(own_pid(), OUR_HOSTS_PID);
	assert_int_equal(host_pid(), OUR_HOSTS_PID);
}

static void a_new_pid_with_what_a_context_takes_is_ours_beside_busy_neighbours(void **unused)
{
	make_context(CONTEXT, CONTEXT + EXTRA + 700 * MIB, CONTEXT);
	assert_int_equal(own_pid(), OUR_HOSTS_PID);
}

static void a_new_pid_that_fits_neither_is_not(void **unused)
{
	make_context(CONTEXT, CONTEXT + EXTRA + 700 * MIB, 0);
	assert_int_equal(own_pid(), getpid());
	assert_int_equal(host_pid(), 0);
	begin(NULL);
	make_context(CONTEXT, CONTEXT - MIB, CONTEXT + 2 * MIB);
	assert_int_equal(own_pid(), getpid());
	begin(NULL);
	make_context(MIB, MIB, MIB);
	assert_int_equal(own_pid(), getpid());
	begin(NULL);
	make_context(NVML_VALUE_NOT_AVAILABLE, CONTEXT, 0);
	assert_int_equal(own_pid(), getpid());
}

static void two_that_fit_are_none(void **unused)
{
	own_pid_before_context(&device);
	list(OUR_HOSTS_PID, CONTEXT);
	list(OUR_HOSTS_PID + 1, CONTEXT);
	own_pid_after_context(&device, CONTEXT);
	assert_int_equal(own_pid(), getpid());
	assert_int_equal(host_pid(), 0);
}

static void one_that_fits_beside_ours_that_does_not_is_none(void **unused)
{
	own_pid_before_context(&device);
	list(OUR_HOSTS_PID, CONTEXT + 64 * MIB);
	list(OUR_HOSTS_PID + 1, CONTEXT);
	used_bytes += 2 * CONTEXT + 64 * MIB + 2 * EXTRA;
	own_pid_after_context(&device, CONTEXT);
	assert_int_equal(own_pid(), getpid());
	assert_int_equal(host_pid(), 0);
}

static void a_stranger_with_our_number_is_not_us(void **unused)
{
	list((unsigned)getpid(), 900 * MIB);
	own_pid_before_context(&device);
	assert_int_equal(own_pid(), 0);
	list(OUR_HOSTS_PID, CONTEXT);
	own_pid_after_context(&device, CONTEXT);
	assert_int_equal(own_pid(), OUR_HOSTS_PID);
}

static void without_a_list_from_before_nothing_is_new(void **unused)
{
	outcome = -19;
	own_pid_before_context(&device);
	outcome = 0;
	list(OUR_HOSTS_PID, CONTEXT);
	own_pid_after_context(&device, CONTEXT);
	assert_int_equal(own_pid(), getpid());
	begin(NULL);
	own_pid_before_context(&another);
	list(OUR_HOSTS_PID, CONTEXT);
	own_pid_after_context(&device, CONTEXT);
	assert_int_equal(own_pid(), getpid());
}

static void a_figure_that_stays_far_below_the_books_is_anothers(void **unused)
{
	make_context(CONTEXT, CONTEXT + EXTRA, 0);
	assert_true(is_ours(CONTEXT, CONTEXT + 64 * MIB));
	assert_false(is_ours(CONTEXT, CONTEXT + 200 * MIB));
	assert_false(is_ours(CONTEXT, CONTEXT + 200 * MIB));
	assert_true(is_ours(CONTEXT + 200 * MIB, CONTEXT + 200 * MIB));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(own_pid(), OUR_HOSTS_PID);
		assert_false(is_ours(CONTEXT, CONTEXT + 200 * MIB));
	}
	assert_int_equal(own_pid(), 0);
	assert_int_equal(host_pid(), 0);
}

static void what_is_found_stays_found(void **unused)
{
	make_context(CONTEXT, CONTEXT + EXTRA, 0);
	own_pid_before_context(&another);
	list(OUR_HOSTS_PID + 1, CONTEXT);
	own_pid_after_context(&another, CONTEXT);
	assert_int_equal(own_pid(), OUR_HOSTS_PID);
	own_pid_reset_after_fork();
	assert_int_equal(own_pid(), getpid());
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(our_own_pid_is_ours_unless_we_know_better),
		TEST(a_new_pid_with_what_the_device_lost_is_ours),
		TEST(a_new_pid_with_what_a_context_takes_is_ours_beside_busy_neighbours),
		TEST(a_new_pid_that_fits_neither_is_not),
		TEST(two_that_fit_are_none),
		TEST(one_that_fits_beside_ours_that_does_not_is_none),
		TEST(a_stranger_with_our_number_is_not_us),
		TEST(without_a_list_from_before_nothing_is_new),
		TEST(a_figure_that_stays_far_below_the_books_is_anothers),
		TEST(what_is_found_stays_found),
	};

	return cmocka_run_group_tests_name("own_pid", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What copies, fills and prefetches tell the gate; driver and gate are the test's own. */
#include <string.h>

#include "tenant/hooks/bulk.h"
#include "tenant/memory/everywhere.h"
#include "tests/unit/cmocka_ready.h"

#define BIG  UINT64_C(0x300000)
#define TINY UINT64_C(4096)
/* A stream of the program's own, which nobody looks into. */
#define STREAM UINT64_C(0x7f0000001000)
#define THREAD UINT64_C(2) /* CU_STREAM_PER_THREAD */

#define WORDS  9
typedef CUresult any_fn(long, long, long, long, long, long, long, long, long);

/* The hooks by name, as this test reaches them. */
#define HOOK(s) s##_fn s;
#define CALL(s)
#include "gpu/cuda.def"

struct cuda_driver cuda;
_Atomic bool hook_has_cuda = true, call_end_is_awaited;
static struct state_word begun = {.mode = STATE_ASIDE};
_Atomic(struct state_word *) state_word = &begun;
_Atomic uint32_t gate_mode;
_Atomic uint64_t gate_next_poll;
__thread uint32_t gate_free_passes;
__thread uint32_t gate_copied[1 << GATE_COPY_BITS];

bool everywhere_may_lie_on(CUdevice ordinal)
{
	return true;
}

bool gate_has_rest(void)
{
	return true;
}

/* What happened, in the order of a call. */
static struct {
	unsigned enters, leaves, copies, calls, waits;
	bool is_wrong_order;
	CUstream stream;
	uint64_t key;
	CUresult left_with;
} seen;
static CUresult answer;

int hook_begun_slowly(void)
{
	return 0;
}

void hook_ended_slowly(void)
{
}

void *hook_find_other(const char *symbol)
{
	return NULL;
}

bool hook_attach_cuda_slowly(void)
{
	return false;
}

void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	seen.enters++;
	seen.stream = stream;
	seen.key = key;
	seen.is_wrong_order |= seen.calls != 0;
	ret_pass->is_metered = true;
	ret_pass->state = (struct stream_state *)&seen;
}

void gate_leave_slowly(struct gate_pass *pass, CUresult result)
{
	assert_ptr_equal(pass->state, &seen);
	seen.leaves++;
	seen.left_with = result;
	seen.is_wrong_order |= seen.calls != 1;
}

void gate_copy_slowly(CUstream stream)
{
	*gate_copied_to(stream) = 0;
	seen.copies++;
	seen.stream = stream;
	seen.is_wrong_order |= seen.calls != 0;
}

void gate_wait_begin_slowly(CUstream stream, bool is_all, struct gate_wait *ret_wait)
{
	assert_false(is_all);
	seen.waits++;
	seen.is_wrong_order |= seen.calls != 0;
	*ret_wait = (struct gate_wait){.is_watched = true};
}

void gate_wait_end_slowly(struct gate_wait *wait, CUresult result)
{
	assert_int_equal(result, answer);
	seen.is_wrong_order |= seen.calls != 1;
}

static CUresult driver_call(void)
{
	seen.calls++;
	return answer;
}

/* Every function of the driver is the one above: what it is given is for tests/tenant/test_copies.c. */
static int open_driver(void **state)
{
	CUresult (**slots)(void) = (void *)&cuda;

	for (size_t i = 0; i < sizeof(cuda) / sizeof(*slots); i++)
		slots[i] = driver_call;
	answer = CUDA_SUCCESS;
	atomic_store(&gate_mode, GATE_ON);
	return 0;
}

struct row {
	const char *name;
	any_fn *hook;
	enum bulk kind; /* 0: a copy engine's work */
	uint64_t stream, bytes;
	long words[WORDS];
};
#define ROW(symbol, kind, stream, bytes, ...)                           \
	{                                                               \
#symbol, (any_fn *)(void *)symbol, kind, stream, bytes, \
		{                                                       \
			__VA_ARGS__                                     \
		}                                                       \
	}
/* The two forms of what waits, and of what is given a stream: its last word, or none. */
#define SYNC(symbol, kind, bytes, ...)            \
	ROW(symbol, kind, 0, bytes, __VA_ARGS__), \
		ROW(symbol##_ptds, kind, THREAD, bytes, __VA_ARGS__)
#define ASYNC(symbol, kind, bytes, ...)                                       \
	ROW(symbol, kind, STREAM, bytes, __VA_ARGS__, STREAM),                \
		ROW(symbol, kind, 0, bytes, __VA_ARGS__, 0),                  \
		ROW(symbol##_ptsz, kind, STREAM, bytes, __VA_ARGS__, STREAM), \
		ROW(symbol##_ptsz, kind, THREAD, bytes, __VA_ARGS__, 0)

#define ASYNC_ONE(symbol, kind, bytes, ...) ROW(symbol, kind, STREAM, bytes, __VA_ARGS__, STREAM)

static void call(const struct row *row, CUresult want)
{
	const long *w = row->words;

	memset(&seen, 0, sizeof(seen));
	answer = want;
	assert_int_equal(row->hook(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]), want);
	assert_int_equal(seen.calls, 1);
	assert_false(seen.is_wrong_order);
}

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];

		print_message("%s\n", row->name);
		/* the driver's error is the program's to see, and the gate's */
		call(row, i % 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(seen.enters, row->kind != 0);
		assert_int_equal(seen.leaves, row->kind != 0);
		assert_int_equal(seen.copies, row->kind == 0);
		/* a copy to the host without a stream is a wait for what the stream had before */
		assert_int_equal(
			seen.waits, strstr(row->name, "toH") && !strstr(row->name, "Async"));
		assert_int_equal((uintptr_t)seen.stream, row->stream);
		if (row->kind == 0)
			continue;
		assert_int_equal(seen.key, bulk_key(row->kind, row->bytes));
		assert_int_equal(seen.left_with, answer);
	}
}

static void copies_on_the_device_are_metered(void **state)
{
	const struct row rows[] = {
		SYNC(cuMemcpy, BULK_COPY, BIG, 1, 2, BIG),
		ASYNC(cuMemcpyAsync, BULK_COPY, BIG, 1, 2, BIG),
		ROW(cuMemcpyDtoD, BULK_COPY, 0, BIG, 1, 2, BIG),
		SYNC(cuMemcpyDtoD_v2, BULK_COPY, BIG, 1, 2, BIG),
		ROW(cuMemcpyDtoDAsync, BULK_COPY, STREAM, BIG, 1, 2, BIG, STREAM),
		ASYNC(cuMemcpyDtoDAsync_v2, BULK_COPY, BIG, 1, 2, BIG),
		SYNC(cuMemcpyPeer, BULK_COPY_PEER, BIG, 1, 2, 3, 4, BIG),
		ASYNC(cuMemcpyPeerAsync, BULK_COPY_PEER, BIG, 1, 2, 3, 4, BIG),
		ROW(cuMemcpyDtoA, BULK_COPY_SHAPED, 0, BIG, 1, 2, 3, BIG),
		SYNC(cuMemcpyDtoA_v2, BULK_COPY_SHAPED, BIG, 1, 2, 3, BIG),
		ROW(cuMemcpyAtoD, BULK_COPY_SHAPED, 0, BIG, 1, 2, 3, BIG),
		SYNC(cuMemcpyAtoD_v2, BULK_COPY_SHAPED, BIG, 1, 2, 3, BIG),
		ROW(cuMemcpyAtoA, BULK_COPY_SHAPED, 0, BIG, 1, 2, 3, 4, BIG),
		SYNC(cuMemcpyAtoA_v2, BULK_COPY_SHAPED, BIG, 1, 2, 3, 4, BIG),
	};

	check(rows, ARRAY_SIZE(rows));
}

static void copies_to_and_from_the_host_are_told_and_not_metered(void **state)
{
	const struct row rows[] = {
		ROW(cuMemcpyHtoD, 0, 0, BIG, 1, 2, BIG),
		SYNC(cuMemcpyHtoD_v2, 0, BIG, 1, 2, BIG),
		ROW(cuMemcpyHtoDAsync, 0, STREAM, BIG, 1, 2, BIG, STREAM),
		ASYNC(cuMemcpyHtoDAsync_v2, 0, BIG, 1, 2, BIG),
		ROW(cuMemcpyDtoH, 0, 0, BIG, 1, 2, BIG),
		SYNC(cuMemcpyDtoH_v2, 0, BIG, 1, 2, BIG),
		ROW(cuMemcpyDtoHAsync, 0, STREAM, BIG, 1, 2, BIG, STREAM),
		ASYNC(cuMemcpyDtoHAsync_v2, 0, BIG, 1, 2, BIG),
		ROW(cuMemcpyHtoA, 0, 0, BIG, 1, 2, 3, BIG),
		SYNC(cuMemcpyHtoA_v2, 0, BIG, 1, 2, 3, BIG),
		ROW(cuMemcpyHtoAAsync, 0, STREAM, BIG, 1, 2, 3, BIG, STREAM),
		ASYNC(cuMemcpyHtoAAsync_v2, 0, BIG, 1, 2, 3, BIG),
		ROW(cuMemcpyAtoH, 0, 0, BIG, 1, 2, 3, BIG),
		SYNC(cuMemcpyAtoH_v2, 0, BIG, 1, 2, 3, BIG),
		ROW(cuMemcpyAtoHAsync, 0, STREAM, BIG, 1, 2, 3, BIG, STREAM),
		ASYNC(cuMemcpyAtoHAsync_v2, 0, BIG, 1, 2, 3, BIG),
	};

	check(rows, ARRAY_SIZE(rows));
}

static void fills_are_metered_by_their_bytes(void **state)
{
	const struct row rows[] = {
		ROW(cuMemsetD8, BULK_FILL, 0, BIG, 1, 2, BIG),
		SYNC(cuMemsetD8_v2, BULK_FILL, BIG, 1, 2, BIG),
		ASYNC(cuMemsetD8Async, BULK_FILL, BIG, 1, 2, BIG),
		ROW(cuMemsetD16, BULK_FILL, 0, 2 * BIG, 1, 2, BIG),
		SYNC(cuMemsetD16_v2, BULK_FILL, 2 * BIG, 1, 2, BIG),
		ASYNC(cuMemsetD16Async, BULK_FILL, 2 * BIG, 1, 2, BIG),
		/* more than 4 GiB of elements that are counted in 32 bits */
		ROW(cuMemsetD32, BULK_FILL, 0, 4 * (BIG << 8), 1, 2, BIG << 8),
		SYNC(cuMemsetD32_v2, BULK_FILL, 4 * BIG, 1, 2, BIG),
		ASYNC(cuMemsetD32Async, BULK_FILL, 4 * BIG, 1, 2, BIG),
		ROW(cuMemsetD2D8, BULK_FILL_SHAPED, 0, TINY * BIG, 1, 2, 3, TINY, BIG),
		SYNC(cuMemsetD2D8_v2, BULK_FILL_SHAPED, TINY * BIG, 1, 2, 3, TINY, BIG),
		ASYNC(cuMemsetD2D8Async, BULK_FILL_SHAPED, TINY * BIG, 1, 2, 3, TINY, BIG),
		ROW(cuMemsetD2D16, BULK_FILL_SHAPED, 0, 2 * TINY * BIG, 1, 2, 3, TINY, BIG),
		SYNC(cuMemsetD2D16_v2, BULK_FILL_SHAPED, 2 * TINY * BIG, 1, 2, 3, TINY, BIG),
		ASYNC(cuMemsetD2D16Async, BULK_FILL_SHAPED, 2 * TINY * BIG, 1, 2, 3, TINY, BIG),
		ROW(cuMemsetD2D32, BULK_FILL_SHAPED, 0, 4 * TINY * BIG, 1, 2, 3, TINY, BIG),
		SYNC(cuMemsetD2D32_v2, BULK_FILL_SHAPED, 4 * TINY * BIG, 1, 2, 3, TINY, BIG),
		ASYNC(cuMemsetD2D32Async, BULK_FILL_SHAPED, 4 * TINY * BIG, 1, 2, 3, TINY, BIG),
	};

	check(rows, ARRAY_SIZE(rows));
}

static void a_description_says_what_a_copy_is(void **state)
{
	static const struct {
		CUmemorytype from, to;
		bool is_metered;
	} cases[] = {
		{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE, true},
		{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY, true},
		{CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_DEVICE, true},
		{CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_ARRAY, true},
		{CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_DEVICE, true},
		{CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED, true},
		{CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, false},
		{CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_HOST, false},
		{CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_UNIFIED, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		enum bulk kind = cases[i].is_metered ? BULK_COPY_SHAPED : 0;
		CUDA_MEMCPY2D flat = {.srcMemoryType = cases[i].from,
			.dstMemoryType = cases[i].to,
			.WidthInBytes = BIG,
			.Height = 3};
		CUDA_MEMCPY2D_v1 old_flat = {.srcMemoryType = cases[i].from,
			.dstMemoryType = cases[i].to,
			.WidthInBytes = BIG,
			.Height = 3};
		CUDA_MEMCPY3D deep = {.srcMemoryType = cases[i].from,
			.dstMemoryType = cases[i].to,
			.WidthInBytes = BIG,
			.Height = 3,
			.Depth = 5};
		CUDA_MEMCPY3D_v1 old_deep = {.srcMemoryType = cases[i].from,
			.dstMemoryType = cases[i].to,
			.WidthInBytes = BIG,
			.Height = 3,
			.Depth = 5};
		CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = cases[i].from,
			.dstMemoryType = cases[i].to,
			.WidthInBytes = BIG,
			.Height = 3,
			.Depth = 5};
		const struct row rows[] = {
			ROW(cuMemcpy2D, kind, 0, 3 * BIG, (long)&old_flat),
			SYNC(cuMemcpy2D_v2, kind, 3 * BIG, (long)&flat),
			ROW(cuMemcpy2DUnaligned, kind, 0, 3 * BIG, (long)&old_flat),
			SYNC(cuMemcpy2DUnaligned_v2, kind, 3 * BIG, (long)&flat),
			ROW(cuMemcpy2DAsync, kind, STREAM, 3 * BIG, (long)&old_flat, STREAM),
			ASYNC(cuMemcpy2DAsync_v2, kind, 3 * BIG, (long)&flat),
			ROW(cuMemcpy3D, kind, 0, 15 * BIG, (long)&old_deep),
			SYNC(cuMemcpy3D_v2, kind, 15 * BIG, (long)&deep),
			ROW(cuMemcpy3DAsync, kind, STREAM, 15 * BIG, (long)&old_deep, STREAM),
			ASYNC(cuMemcpy3DAsync_v2, kind, 15 * BIG, (long)&deep),
			SYNC(cuMemcpy3DPeer, kind, 15 * BIG, (long)&peer),
			ASYNC(cuMemcpy3DPeerAsync, kind, 15 * BIG, (long)&peer),
		};

		check(rows, ARRAY_SIZE(rows));
	}
}

static void batches_are_metered_by_their_sum(void **state)
{
	size_t sizes[] = {TINY, BIG, BIG};
	long s = (long)sizes;
	CUDA_MEMCPY3D_BATCH_OP list[] = {
		{.extent = {TINY, 1, 1}}, {.extent = {BIG, 3, 5}}, {.extent = {BIG, 1, 1}}};
	CUmemLocation places[6] = {{.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	long l = (long)list, p = (long)places;
	uint64_t sum = TINY + 2 * BIG, sum_3d = TINY + 16 * BIG;
	const struct row rows[] = {
		ASYNC(cuMemcpyBatchAsync, BULK_COPY_BATCH, sum, 1, 2, s, 3, 4, 5, 6, 7),
		ASYNC(cuMemcpyBatchAsync_v2, BULK_COPY_BATCH, sum, 1, 2, s, 3, 4, 5, 6),
		ASYNC(cuMemcpy3DBatchAsync, BULK_COPY_BATCH, sum_3d, 3, l, 1, 0),
		ASYNC(cuMemcpy3DBatchAsync_v2, BULK_COPY_BATCH, sum_3d, 3, l, 0),
		ASYNC(cuMemPrefetchBatchAsync, BULK_PREFETCH, sum, 1, s, 3, p, 5, 6, 0),
		ASYNC(cuMemDiscardAndPrefetchBatchAsync, BULK_PREFETCH, sum, 1, s, 3, p, 5, 6, 0),
		ASYNC(cuMemPrefetchAsync, BULK_PREFETCH, BIG, 1, BIG, 0),
		ASYNC(cuMemPrefetchAsync_v2, BULK_PREFETCH, BIG, 1, BIG, 1, 0),
		/* without a list there is nothing to add up, and the driver says so */
		ROW(cuMemcpyBatchAsync_v2, BULK_COPY_BATCH, 0, 0, 1, 2, 0, 3),
		ROW(cuMemcpy3DBatchAsync_v2, BULK_COPY_BATCH, 0, 0, 3),
	};

	check(rows, ARRAY_SIZE(rows));
}

static void decompression_is_told_and_not_metered(void **state)
{
	CUmemDecompressParams list[] = {{.srcNumBytes = TINY, .dstNumBytes = BIG},
		{.srcNumBytes = BIG, .dstNumBytes = BIG}};
	const struct row rows[] = {
		ASYNC(cuMemBatchDecompressAsync, 0, TINY + 3 * BIG, (long)list, 2, 0, 0),
	};

	check(rows, ARRAY_SIZE(rows));
}

/* The first of so many bytes in each stream is not worth telling. */
static void small_copies_are_told_when_they_come_to_as_much(void **state)
{
	const struct row none = ASYNC_ONE(cuMemBatchDecompressAsync, 0, 0, 0, 2, 0, 0);
	const struct row rows[] = {
		ROW(cuMemcpyHtoD_v2, 0, 0, 0, 1, 2, GATE_COPY_BYTES - 1),
		ASYNC_ONE(cuMemcpyDtoHAsync_v2, 0, 0, 1, 2, GATE_COPY_BYTES - 1),
	};
	const struct row least = ASYNC_ONE(cuMemcpyHtoDAsync_v2, 0, 0, 1, 2, 1);

	memset(gate_copied, 0, sizeof(gate_copied));
	call(&none, CUDA_SUCCESS);
	assert_int_equal(seen.copies, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		call(&rows[i], CUDA_SUCCESS);
		assert_int_equal(seen.copies, 0);
	}
	call(&least, CUDA_SUCCESS);
	assert_int_equal(seen.copies, 1);
	call(&least, CUDA_SUCCESS);
	assert_int_equal(seen.copies, 0);
}

static void without_a_description_there_is_nothing_to_meter(void **state)
{
	const struct row rows[] = {
		SYNC(cuMemcpy2D_v2, 0, 0, 0),
		ASYNC(cuMemcpy3DAsync_v2, 0, 0, 0),
		ROW(cuMemcpy3D, 0, 0, 0, 0),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		call(&rows[i], CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(seen.copies + seen.enters + seen.leaves, 0);
	}
}

static void nothing_is_told_where_nothing_is_metered(void **state)
{
	/* a description and lists at addresses where nothing is: they are not looked at */
	const struct row rows[] = {
		SYNC(cuMemcpyDtoD_v2, 0, 0, 1, 2, BIG),
		SYNC(cuMemcpyHtoD_v2, 0, 0, 1, 2, BIG),
		SYNC(cuMemsetD8_v2, 0, 0, 1, 2, BIG),
		SYNC(cuMemcpy3D_v2, 0, 0, 8),
		ASYNC(cuMemcpyBatchAsync_v2, 0, 0, 1, 2, 8, 3, 4, 5, 6),
		ASYNC(cuMemcpy3DBatchAsync_v2, 0, 0, 3, 8, 0),
		ASYNC(cuMemBatchDecompressAsync, 0, 0, 8, 2, 0, 0),
	};

	atomic_store(&gate_mode, GATE_OFF);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		call(&rows[i], CUDA_SUCCESS);
		assert_int_equal(seen.copies + seen.enters + seen.leaves, 0);
	}
}

static void keys_tell_kinds_and_powers_of_bytes_apart(void **state)
{
	for (enum bulk kind = BULK_COPY; kind <= BULK_PREFETCH; kind++)
		for (enum bulk other = BULK_COPY; other <= BULK_PREFETCH; other++)
			for (unsigned a = 0; a < 64; a++)
				for (unsigned b = 0; b < 64; b++)
					assert_int_equal(bulk_key(kind, UINT64_C(1) << a) ==
								 bulk_key(other, UINT64_C(1) << b),
						kind == other && a == b);
	assert_int_equal(bulk_key(BULK_FILL, 4096), bulk_key(BULK_FILL, 8191));
	assert_int_equal(bulk_key(BULK_FILL, 0), bulk_key(BULK_FILL, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(copies_on_the_device_are_metered, open_driver),
		cmocka_unit_test_setup(
			copies_to_and_from_the_host_are_told_and_not_metered, open_driver),
		cmocka_unit_test_setup(fills_are_metered_by_their_bytes, open_driver),
		cmocka_unit_test_setup(a_description_says_what_a_copy_is, open_driver),
		cmocka_unit_test_setup(batches_are_metered_by_their_sum, open_driver),
		cmocka_unit_test_setup(decompression_is_told_and_not_metered, open_driver),
		cmocka_unit_test_setup(
			small_copies_are_told_when_they_come_to_as_much, open_driver),
		cmocka_unit_test_setup(
			without_a_description_there_is_nothing_to_meter, open_driver),
		cmocka_unit_test_setup(nothing_is_told_where_nothing_is_metered, open_driver),
		cmocka_unit_test(keys_tell_kinds_and_powers_of_bytes_apart),
	};

	return cmocka_run_group_tests_name("bulk", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches do under the library what they do without it, in each of their forms.
 * What they tell the gate is for tests/unit/test_bulk.c.
 */
#include "tests/tenant/meter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "region/layout.h"

#define INVALID_HANDLE 400
#define NOT_SUPPORTED  801
#define BROKEN	       719 /* what a test lets the driver answer */

/* A limit that these few microseconds of work do not come near. */
#define LIMIT "CUDA_DEVICE_SM_LIMIT=90"
#define TIMES 200
/* Work is booked when what follows it begins anew: after a pause, or a millisecond of it. */
#define ADDED_MOST 2000

/* A function, and what it is given (client_copy.c), of what prepare() has made. */
static const char *const copies[][2] = {
	{"cuMemcpyHtoD", "a h 256k"},
	{"cuMemcpyHtoD_v2", "a h 256k"},
	{"cuMemcpyHtoD_v2_ptds", "a h 256k"},
	{"cuMemcpyHtoDAsync", "b g 256k s"},
	{"cuMemcpyHtoDAsync_v2", "b g 256k s"},
	{"cuMemcpyHtoDAsync_v2_ptsz", "b g 256k 0"},
	{"cuMemcpyDtoD", "b a 200k"},
	{"cuMemcpyDtoD_v2", "b a 200k"},
	{"cuMemcpyDtoD_v2_ptds", "b a 200k"},
	{"cuMemcpyDtoDAsync", "a b 100k s"},
	{"cuMemcpyDtoDAsync_v2", "a b 100k s"},
	{"cuMemcpyDtoDAsync_v2_ptsz", "a b 100k 0"},
	{"cuMemcpyDtoH", "g b 256k"},
	{"cuMemcpyDtoH_v2", "g b 256k"},
	{"cuMemcpyDtoH_v2_ptds", "g b 256k"},
	{"cuMemcpyDtoHAsync", "h b 50k s"},
	{"cuMemcpyDtoHAsync_v2", "h b 50k s"},
	{"cuMemcpyDtoHAsync_v2_ptsz", "h b 50k 0"},
	{"cuMemcpy", "a h 10k"},
	{"cuMemcpy_ptds", "a h 10k"},
	{"cuMemcpyAsync", "h a 20k s"},
	{"cuMemcpyAsync_ptsz", "h a 20k 0"},
	{"cuMemcpyPeer", "b old m old 30k"},
	{"cuMemcpyPeer_ptds", "b old m old 30k"},
	{"cuMemcpyPeerAsync", "m old b old 40k s"},
	{"cuMemcpyPeerAsync_ptsz", "m old b old 40k 0"},
};

static const char *const array_copies[][2] = {
	{"cuMemcpyHtoA", "r 0 h 64k"},
	{"cuMemcpyHtoA_v2", "r 0 h 64k"},
	{"cuMemcpyHtoA_v2_ptds", "r 0 h 64k"},
	{"cuMemcpyHtoAAsync", "r 1k g 32k s"},
	{"cuMemcpyHtoAAsync_v2", "r 1k g 32k s"},
	{"cuMemcpyHtoAAsync_v2_ptsz", "r 1k g 32k 0"},
	{"cuMemcpyDtoA", "r 2k a 16k"},
	{"cuMemcpyDtoA_v2", "r 2k a 16k"},
	{"cuMemcpyDtoA_v2_ptds", "r 2k a 16k"},
	{"cuMemcpyAtoD", "b r 3k 8k"},
	{"cuMemcpyAtoD_v2", "b r 3k 8k"},
	{"cuMemcpyAtoD_v2_ptds", "b r 3k 8k"},
	{"cuMemcpyAtoA", "r 0 q 0 60k"},
	{"cuMemcpyAtoA_v2", "r 0 q 0 60k"},
	{"cuMemcpyAtoA_v2_ptds", "r 0 q 0 60k"},
	{"cuMemcpyAtoH", "g r 1k 60k"},
	{"cuMemcpyAtoH_v2", "g r 1k 60k"},
	{"cuMemcpyAtoH_v2_ptds", "g r 1k 60k"},
	{"cuMemcpyAtoHAsync", "h r 0 64k s"},
	{"cuMemcpyAtoHAsync_v2", "h r 0 64k s"},
	{"cuMemcpyAtoHAsync_v2_ptsz", "h r 0 64k 0"},
};

static const char *const shaped_copies[][2] = {
	{"cuMemcpy2D", "hd.old2"},
	{"cuMemcpy2D_v2", "hd.2"},
	{"cuMemcpy2D_v2_ptds", "hd.2"},
	{"cuMemcpy2DUnaligned", "hd.old2"},
	{"cuMemcpy2DUnaligned_v2", "hd.2"},
	{"cuMemcpy2DUnaligned_v2_ptds", "hd.2"},
	{"cuMemcpy3D", "hd.old3"},
	{"cuMemcpy3D_v2", "hd.3"},
	{"cuMemcpy3D_v2_ptds", "hd.3"},
	{"cuMemcpy2DAsync", "hd.old2 s"},
	{"cuMemcpy2DAsync_v2", "hd.2 s"},
	{"cuMemcpy2DAsync_v2_ptsz", "hd.2 0"},
	{"cuMemcpy3DAsync", "hd.old3 s"},
	{"cuMemcpy3DAsync_v2", "hd.3 s"},
	{"cuMemcpy3DAsync_v2_ptsz", "hd.3 0"},
	{"cuMemcpy2D", "dd.old2"},
	{"cuMemcpy2D_v2", "dd.2"},
	{"cuMemcpy2D_v2_ptds", "dd.2"},
	{"cuMemcpy2DUnaligned", "dd.old2"},
	{"cuMemcpy2DUnaligned_v2", "dd.2"},
	{"cuMemcpy2DUnaligned_v2_ptds", "dd.2"},
	{"cuMemcpy3D", "dd.old3"},
	{"cuMemcpy3D_v2", "dd.3"},
	{"cuMemcpy3D_v2_ptds", "dd.3"},
	{"cuMemcpy2DAsync", "dd.old2 s"},
	{"cuMemcpy2DAsync_v2", "dd.2 s"},
	{"cuMemcpy2DAsync_v2_ptsz", "dd.2 0"},
	{"cuMemcpy3DAsync", "dd.old3 s"},
	{"cuMemcpy3DAsync_v2", "dd.3 s"},
	{"cuMemcpy3DAsync_v2_ptsz", "dd.3 0"},
	{"cuMemcpy3DPeer", "dd.peer"},
	{"cuMemcpy3DPeer_ptds", "dd.peer"},
	{"cuMemcpy3DPeerAsync", "dd.peer s"},
	{"cuMemcpy3DPeerAsync_ptsz", "dd.peer 0"},
	{"cuMemcpy2D", "da.old2"},
	{"cuMemcpy2D_v2", "da.2"},
	{"cuMemcpy2D_v2_ptds", "da.2"},
	{"cuMemcpy2DUnaligned", "da.old2"},
	{"cuMemcpy2DUnaligned_v2", "da.2"},
	{"cuMemcpy2DUnaligned_v2_ptds", "da.2"},
	{"cuMemcpy3D", "da.old3"},
	{"cuMemcpy3D_v2", "da.3"},
	{"cuMemcpy3D_v2_ptds", "da.3"},
	{"cuMemcpy2DAsync", "da.old2 s"},
	{"cuMemcpy2DAsync_v2", "da.2 s"},
	{"cuMemcpy2DAsync_v2_ptsz", "da.2 0"},
	{"cuMemcpy3DAsync", "da.old3 s"},
	{"cuMemcpy3DAsync_v2", "da.3 s"},
	{"cuMemcpy3DAsync_v2_ptsz", "da.3 0"},
	{"cuMemcpy3DPeer", "da.peer"},
	{"cuMemcpy3DPeer_ptds", "da.peer"},
	{"cuMemcpy3DPeerAsync", "da.peer s"},
	{"cuMemcpy3DPeerAsync_ptsz", "da.peer 0"},
	{"cuMemcpy2D", "ad.old2"},
	{"cuMemcpy2D_v2", "ad.2"},
	{"cuMemcpy2D_v2_ptds", "ad.2"},
	{"cuMemcpy2DUnaligned", "ad.old2"},
	{"cuMemcpy2DUnaligned_v2", "ad.2"},
	{"cuMemcpy2DUnaligned_v2_ptds", "ad.2"},
	{"cuMemcpy3D", "ad.old3"},
	{"cuMemcpy3D_v2", "ad.3"},
	{"cuMemcpy3D_v2_ptds", "ad.3"},
	{"cuMemcpy2DAsync", "ad.old2 s"},
	{"cuMemcpy2DAsync_v2", "ad.2 s"},
	{"cuMemcpy2DAsync_v2_ptsz", "ad.2 0"},
	{"cuMemcpy3DAsync", "ad.old3 s"},
	{"cuMemcpy3DAsync_v2", "ad.3 s"},
	{"cuMemcpy3DAsync_v2_ptsz", "ad.3 0"},
	{"cuMemcpy3DPeer", "ad.peer"},
	{"cuMemcpy3DPeer_ptds", "ad.peer"},
	{"cuMemcpy3DPeerAsync", "ad.peer s"},
	{"cuMemcpy3DPeerAsync_ptsz", "ad.peer 0"},
	{"cuMemcpy2D_v2", "uu.2"},
	{"cuMemcpy2D_v2_ptds", "uu.2"},
	{"cuMemcpy2DUnaligned_v2", "uu.2"},
	{"cuMemcpy2DUnaligned_v2_ptds", "uu.2"},
	{"cuMemcpy3D_v2", "uu.3"},
	{"cuMemcpy3D_v2_ptds", "uu.3"},
	{"cuMemcpy2DAsync_v2", "uu.2 s"},
	{"cuMemcpy2DAsync_v2_ptsz", "uu.2 0"},
	{"cuMemcpy3DAsync_v2", "uu.3 s"},
	{"cuMemcpy3DAsync_v2_ptsz", "uu.3 0"},
	{"cuMemcpy2D", "dh.old2"},
	{"cuMemcpy2D_v2", "dh.2"},
	{"cuMemcpy2D_v2_ptds", "dh.2"},
	{"cuMemcpy2DUnaligned", "dh.old2"},
	{"cuMemcpy2DUnaligned_v2", "dh.2"},
	{"cuMemcpy2DUnaligned_v2_ptds", "dh.2"},
	{"cuMemcpy3D", "dh.old3"},
	{"cuMemcpy3D_v2", "dh.3"},
	{"cuMemcpy3D_v2_ptds", "dh.3"},
	{"cuMemcpy2DAsync", "dh.old2 s"},
	{"cuMemcpy2DAsync_v2", "dh.2 s"},
	{"cuMemcpy2DAsync_v2_ptsz", "dh.2 0"},
	{"cuMemcpy3DAsync", "dh.old3 s"},
	{"cuMemcpy3DAsync_v2", "dh.3 s"},
	{"cuMemcpy3DAsync_v2_ptsz", "dh.3 0"},
};

static const char *const fills[][2] = {
	{"cuMemsetD8", "a 17 5k"},
	{"cuMemsetD8_v2", "a 30 5k"},
	{"cuMemsetD8_v2_ptds", "a 43 5k"},
	{"cuMemsetD8Async", "a 56 5k s"},
	{"cuMemsetD8Async_ptsz", "a 69 5k 0"},
	{"cuMemsetD2D8", "b 1k 82 100 30"},
	{"cuMemsetD2D8_v2", "b 1k 95 100 30"},
	{"cuMemsetD2D8_v2_ptds", "b 1k 108 100 30"},
	{"cuMemsetD2D8Async", "b 1k 121 100 30 s"},
	{"cuMemsetD2D8Async_ptsz", "b 1k 134 100 30 0"},
	{"cuMemsetD16", "a 147 5k"},
	{"cuMemsetD16_v2", "a 160 5k"},
	{"cuMemsetD16_v2_ptds", "a 173 5k"},
	{"cuMemsetD16Async", "a 186 5k s"},
	{"cuMemsetD16Async_ptsz", "a 199 5k 0"},
	{"cuMemsetD2D16", "b 1k 212 100 30"},
	{"cuMemsetD2D16_v2", "b 1k 225 100 30"},
	{"cuMemsetD2D16_v2_ptds", "b 1k 238 100 30"},
	{"cuMemsetD2D16Async", "b 1k 251 100 30 s"},
	{"cuMemsetD2D16Async_ptsz", "b 1k 264 100 30 0"},
	{"cuMemsetD32", "a 277 5k"},
	{"cuMemsetD32_v2", "a 290 5k"},
	{"cuMemsetD32_v2_ptds", "a 303 5k"},
	{"cuMemsetD32Async", "a 316 5k s"},
	{"cuMemsetD32Async_ptsz", "a 329 5k 0"},
	{"cuMemsetD2D32", "b 1k 342 100 30"},
	{"cuMemsetD2D32_v2", "b 1k 355 100 30"},
	{"cuMemsetD2D32_v2_ptds", "b 1k 368 100 30"},
	{"cuMemsetD2D32Async", "b 1k 381 100 30 s"},
	{"cuMemsetD2D32Async_ptsz", "b 1k 394 100 30 0"},
};

static const char *const batches[][2] = {
	{"cuMemcpyBatchAsync", "x.to x.from x.sizes 2 x.how x.at 1 x.failed s"},
	{"cuMemcpyBatchAsync_ptsz", "x.to x.from x.sizes 2 x.how x.at 1 x.failed 0"},
	{"cuMemcpyBatchAsync_v2", "x.to x.from x.sizes 2 x.how x.at 1 s"},
	{"cuMemcpyBatchAsync_v2_ptsz", "x.to x.from x.sizes 2 x.how x.at 1 0"},
	{"cuMemcpy3DBatchAsync", "2 x.list x.failed 0 s"},
	{"cuMemcpy3DBatchAsync_ptsz", "2 x.list x.failed 0 0"},
	{"cuMemcpy3DBatchAsync_v2", "2 x.list 0 s"},
	{"cuMemcpy3DBatchAsync_v2_ptsz", "2 x.list 0 0"},
	{"cuMemPrefetchAsync", "m 64k 0 s"},
	{"cuMemPrefetchAsync_ptsz", "m 64k 0 0"},
	{"cuMemPrefetchAsync_v2", "m 64k 1 0 s"},
	{"cuMemPrefetchAsync_v2_ptsz", "m 64k 1 0 0"},
	{"cuMemPrefetchBatchAsync", "y.to y.sizes 2 y.where y.at 1 0 s"},
	{"cuMemPrefetchBatchAsync_ptsz", "y.to y.sizes 2 y.where y.at 1 0 0"},
	{"cuMemDiscardAndPrefetchBatchAsync", "y.to y.sizes 2 y.where y.at 1 0 s"},
	{"cuMemDiscardAndPrefetchBatchAsync_ptsz", "y.to y.sizes 2 y.where y.at 1 0 0"},
};

static const struct family {
	const char *name;
	const char *const (*rows)[2];
	size_t count;
} families[] = {
#define FAMILY(rows)                                          \
	{                                                     \
#rows, rows, sizeof(rows) / sizeof((rows)[0]) \
	}
	FAMILY(copies),
	FAMILY(array_copies),
	FAMILY(shaped_copies),
	FAMILY(fills),
	FAMILY(batches),
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* A client in a context of CUDA 2, where memory can be named by 32 bits, too. */
static struct tenant *prepare_limited(
	struct slice *slice, const char *door, bool has_library, const char *limit)
{
	static const char *const steps[] = {"formctx old 0 1", "oldalloc a 256k", "oldalloc b 256k",
		"managed m 256k", "hostmem h 256k", "hostmem g 256k", "array r 65536,u8",
		"array q 65536,u8", "array p 256x256,u8", "stream s",
		"shape hd device a host h 256 64", "shape dd device b device a 256 64",
		"shape da array p device b 256 64", "shape ad device b array p 256 64",
		"shape uu any m any h 256 64", "shape dh host g device b 256 64",
		"batch x 64k b a m h", "batch y 64k m m m m", "call cuMemcpyHtoD_v2 a h 256k",
		"call cuMemcpyHtoD_v2 b g 256k", "call cuMemcpyHtoD_v2 m h 256k",
		"call cuMemcpyHtoA_v2 q 0 g 64k"};
	struct node *node = slice->node;
	struct tenant *t;

	node->is_without_library = !has_library;
	t = tenant_start(node, slice, door, limit, NULL);
	node->is_without_library = false;
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		expect(t, OK, "%s", steps[i]);
	return t;
}

static struct tenant *prepare(struct slice *slice, const char *door, bool has_library)
{
	return prepare_limited(slice, door, has_library, NULL);
}

/* Asks both for the same. */
static void ask_both(struct tenant *with, struct tenant *without, int want, const char *text)
{
	int other = tenant_ask(without, "%s", text), got = tenant_ask(with, "%s", text);

	if (other != want || got != want || strcmp(with->answer, without->answer) != 0)
		print_message("%s: without %d%s, with %d%s\n", text, other, without->answer, got,
			with->answer);
	assert_int_equal(other, want);
	assert_int_equal(got, want);
	assert_string_equal(with->answer, without->answer);
}

static uint64_t calls_of(struct node *node, const char *symbol)
{
	int number = call_find(symbol);

	assert_true(number >= 0);
	return inject_read_count(node->machine, (unsigned)number);
}

static void try_row(struct tenant *with, struct tenant *without, const char *const row[2])
{
	uint64_t before = calls_of(with->node, row[0]);
	char text[200];

	expect(with, OK, "found %s", row[0]);
	assert_string_equal(with->answer, " found=libvgpu.so");
	snprintf(text, sizeof(text), "call %s %s", row[0], row[1]);
	ask_both(with, without, OK, text);
	/* the driver's function of this very name, once for each of both */
	assert_int_equal(calls_of(with->node, row[0]), before + 2);
	ask_both(with, without, OK, "content 256k a b m h g");
	ask_both(with, without, OK, "content 64k [r]");
}

static void try_door(struct slice *slice, const char *door, const char *limit)
{
	struct tenant *with = prepare_limited(slice, door, true, limit);
	struct tenant *without = prepare(slice, door, false);
	uint64_t held = slice_books(slice, 0);

	for (unsigned f = 0; f < FAMILIES; f++) {
		print_message("%s %s\n", door, families[f].name);
		for (unsigned i = 0; i < families[f].count; i++)
			try_row(with, without, families[f].rows[i]);
	}
	assert_int_equal(slice_books(slice, 0), held);
	assert_int_equal(tenant_end(with), 0);
	assert_int_equal(tenant_end(without), 0);
}

static void each_form_does_what_it_does_without_the_library_through_every_door(void **state)
{
	static const char *const doors[] = {
		"linked", "dlopen", "default", "next", "procaddr", "found-dlopen"};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);

	for (unsigned i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
		try_door(slice, doors[i], NULL);
}

/* What has been booked as metered on device 0: all but what the last batch has begun. */
static uint64_t metered(const struct slice *slice)
{
	return meter_books(slice)->launches;
}

/* Adds metered work until so much is booked, and returns how much it added. */
static unsigned meter_until(struct tenant *t, uint64_t want)
{
	unsigned added = 0;

	while (metered(t->slice) < want && added < ADDED_MOST) {
		expect(t, OK, "call cuMemsetD8Async a 1 1 s");
		expect(t, OK, "call cuCtxSynchronize");
		added++;
	}
	assert_true(metered(t->slice) >= want);
	return added;
}

static void each_form_does_the_same_where_time_is_limited(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);

	try_door(slice, "linked", LIMIT);
}

static void a_limit_meters_what_the_device_does(void **state)
{
	static const char *const work[] = {"call cuMemsetD8_v2 a 1 256k",
		"call cuMemsetD2D32Async b 1k 1 100 30 s", "call cuMemcpyDtoD_v2_ptds b a 256k",
		"call cuMemcpyAsync m a 256k s", "call cuMemcpyAtoD_v2 b r 0 64k",
		"call cuMemcpy2DAsync_v2 dd.2 s", "call cuMemcpy3DPeer da.peer",
		"call cuMemcpyBatchAsync_v2 x.to x.from x.sizes 2 x.how x.at 1 s",
		"call cuMemPrefetchAsync m 64k 0 s"};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = prepare_limited(slice, "linked", true, LIMIT);
	uint64_t given = 0;

	for (unsigned i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
		for (unsigned n = 0; n < TIMES; n++)
			expect(t, OK, "%s", work[i]);
		given += TIMES;
		given += meter_until(t, given);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void and_not_what_copy_engines_do(void **state)
{
	static const char *const work[] = {"call cuMemcpyHtoD_v2 a h 256k",
		"call cuMemcpyDtoHAsync_v2 h a 256k s", "call cuMemcpyHtoA_v2 r 0 h 64k",
		"call cuMemcpy2DAsync_v2 hd.2 s"};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = prepare_limited(slice, "linked", true, LIMIT);

	for (unsigned i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		for (unsigned n = 0; n < TIMES; n++)
			expect(t, OK, "%s", work[i]);
	/* with the first that is booked all before is, and nothing was */
	assert_in_range(meter_until(t, 1), metered(slice), ADDED_MOST);
	assert_int_equal(tenant_end(t), 0);
}

static void what_the_driver_answers_reaches_the_program(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t = prepare(slice, "linked", true);

	for (unsigned f = 0; f < FAMILIES; f++)
		for (unsigned i = 0; i < families[f].count; i++) {
			const char *const *row = families[f].rows[i];
			struct inject_rule broken = {.tag = "*", .result = BROKEN};

			snprintf(broken.symbol, sizeof(broken.symbol), "%s", row[0]);
			assert_true(inject_add_rule(node->machine, &broken) >= 0);
			expect(t, BROKEN, "call %s %s", row[0], row[1]);
			inject_clear_rules(node->machine);
		}
	assert_int_equal(tenant_end(t), 0);
}

static void what_is_wrong_is_for_the_driver_to_say(void **state)
{
	static const struct {
		int want;
		const char *text;
	} cases[] = {
		{INVALID_VALUE, "call cuMemcpyDtoD_v2 a b 1g"},
		{INVALID_VALUE, "call cuMemcpyHtoD_v2 a 0 4k"},
		{INVALID_VALUE, "call cuMemcpyHtoDAsync_v2 0 h 1m s"},
		{INVALID_VALUE, "call cuMemsetD32_v2 1 0 4"},
		{INVALID_VALUE, "call cuMemcpyHtoA_v2 r 65535 h 2"},
		{INVALID_HANDLE, "call cuMemcpyDtoA_v2 0 0 a 4k"},
		{INVALID_HANDLE, "call cuMemsetD8Async a 1 4k h"},
		{INVALID_VALUE, "call cuMemcpy3D_v2 0"},
		{INVALID_VALUE, "call cuMemcpyBatchAsync_v2 x.to x.from x.sizes 2 x.how x.at 1 0"},
		{INVALID_VALUE, "call cuMemcpyBatchAsync_v2 x.to x.from x.sizes 0 x.how x.at 1 s"},
		{INVALID_VALUE, "call cuMemcpy3DBatchAsync_v2 2 0 0 s"},
		{INVALID_VALUE, "call cuMemPrefetchAsync a 4k 0 s"},
		{INVALID_VALUE, "call cuMemPrefetchBatchAsync 0 0 2 y.where y.at 1 0 s"},
		/* these boards have no engine for it */
		{NOT_SUPPORTED, "call cuMemBatchDecompressAsync x.list 2 0 x.failed s"},
		{NOT_SUPPORTED, "call cuMemBatchDecompressAsync_ptsz x.list 2 0 x.failed 0"},
	};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *with = prepare(slice, "linked", true);
	struct tenant *without = prepare(slice, "linked", false);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ask_both(with, without, cases[i].want, cases[i].text);
	ask_both(with, without, OK, "content 256k a b m h g");
	assert_int_equal(tenant_end(with), 0);
	assert_int_equal(tenant_end(without), 0);
}

static void a_capture_takes_copies_and_fills_as_before(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *with = prepare(slice, "linked", true);
	struct tenant *without = prepare(slice, "linked", false);

	ask_both(with, without, OK, "call cuStreamBeginCapture_v2 s 2");
	ask_both(with, without, OK, "call cuMemsetD8Async a 7 4k s");
	ask_both(with, without, OK, "call cuMemcpyDtoDAsync_v2 b a 4k s");
	ask_both(with, without, OK, "call cuMemcpyDtoHAsync_v2 g b 4k s");
	ask_both(with, without, OK, "call cuStreamEndCapture s x.failed");
	ask_both(with, without, OK, "content 256k a b m h g");
	assert_int_equal(tenant_end(with), 0);
	assert_int_equal(tenant_end(without), 0);
}

static void a_stream_is_destroyed_by_either_form_and_once(void **state)
{
	static const char *const forms[] = {"cuStreamDestroy", "cuStreamDestroy_v2"};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *with = prepare(slice, "linked", true);
	struct tenant *without = prepare(slice, "linked", false);

	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		char text[64];

		expect(with, OK, "found %s", forms[i]);
		assert_string_equal(with->answer, " found=libvgpu.so");
		snprintf(text, sizeof(text), "call %s d", forms[i]);
		ask_both(with, without, OK, "stream d");
		ask_both(with, without, OK, "call cuMemsetD8Async a 7 4k d");
		ask_both(with, without, OK, text);
		ask_both(with, without, INVALID_HANDLE, text);
	}
	assert_int_equal(tenant_end(with), 0);
	assert_int_equal(tenant_end(without), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(each_form_does_what_it_does_without_the_library_through_every_door),
		test_with_node(each_form_does_the_same_where_time_is_limited),
		test_with_node(a_limit_meters_what_the_device_does),
		test_with_node(and_not_what_copy_engines_do),
		test_with_node(what_the_driver_answers_reaches_the_program),
		test_with_node(what_is_wrong_is_for_the_driver_to_say),
		test_with_node(a_capture_takes_copies_and_fills_as_before),
		test_with_node(a_stream_is_destroyed_by_either_form_and_once),
	};

	return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/compute_load.c saw, as JSON. */
#include "bench/load_report.h"

#include <stdbool.h>
#include <stdlib.h>

#define FIRST_ROOM    4096
#define NS_PER_SECOND 1000000000u
#define SPAN_GAP_NS   10000 /* between kernels of a stream: 1 to 3 us */

/* A bench without memory has nothing to say. */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room > 0 ? *room * 2 : FIRST_ROOM;
	array = realloc(array, *room * size);
	if (array == NULL) {
		fprintf(stderr, "compute-load: no memory\n");
		exit(1);
	}
	return array;
}

void load_spans_add(struct load_spans *spans, uint64_t start_ns, uint64_t end_ns, unsigned kernels)
{
	spans->span = grow(spans->span, spans->count, &spans->room, sizeof(*spans->span));
	spans->span[spans->count++] = (struct load_span){start_ns, end_ns, kernels};
}

void load_times_add(struct load_times *times, uint64_t ns)
{
	times->ns = grow(times->ns, times->count, &times->room, sizeof(*times->ns));
	times->ns[times->count++] = ns;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_spans(const void *a, const void *b)
{
	const struct load_span *x = a, *y = b;

	return compare_ns(&x->start_ns, &y->start_ns);
}

static double part_us(const struct load_times *times, unsigned percent)
{
	return (double)times->ns[(times->count - 1) * percent / 100] / 1e3;
}

void load_times_print(FILE *to, const char *name, struct load_times *times)
{
	if (times->count == 0)
		return;
	qsort(times->ns, times->count, sizeof(*times->ns), compare_ns);
	fprintf(to, ", \"%s_us\": {\"count\": %zu, \"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}",
		name, times->count, part_us(times, 50), part_us(times, 99), part_us(times, 100));
}

struct bins {
	uint64_t start_ns, end_ns, bin_ns;
	size_t count;
	double *value;
};

/* Gives each bin its part of amount, that is spread evenly over the time. */
static void spread(struct bins *bins, uint64_t from_ns, uint64_t to_ns, double amount)
{
	double per_ns = to_ns > from_ns ? amount / (double)(to_ns - from_ns) : 0;

	if (from_ns < bins->start_ns)
		from_ns = bins->start_ns;
	if (to_ns > bins->end_ns)
		to_ns = bins->end_ns;
	while (from_ns < to_ns) {
		size_t i = (size_t)((from_ns - bins->start_ns) / bins->bin_ns);
		uint64_t next_ns = bins->start_ns + (i + 1) * bins->bin_ns;

		if (next_ns > to_ns)
			next_ns = to_ns;
		bins->value[i] += per_ns * (double)(next_ns - from_ns);
		from_ns = next_ns;
	}
}

static void clear(struct bins *bins)
{
	for (size_t i = 0; i < bins->count; i++)
		bins->value[i] = 0;
}

static void print_array(FILE *to, const char *name, const double *value, size_t count, double scale)
{
	fprintf(to, ", \"%s\": [", name);
	for (size_t i = 0; i < count; i++)
		fprintf(to, "%s%.0f", i > 0 ? "," : "", value[i] * scale);
	fprintf(to, "]");
}

/* Makes one of the i-th span and those behind it that begin before it ends, or so soon after. Returns the next. */
static size_t merge(
	const struct load_spans *spans, size_t i, uint64_t gap_ns, struct load_span *ret_span)
{
	*ret_span = spans->span[i++];
	for (; i < spans->count && spans->span[i].start_ns <= ret_span->end_ns + gap_ns; i++)
		if (spans->span[i].end_ns > ret_span->end_ns)
			ret_span->end_ns = spans->span[i].end_ns;
	return i;
}

/* For as long as any kernel ran: spans that touch or overlap count once. */
static void add_busy(struct bins *bins, const struct load_spans *spans)
{
	struct load_span span;

	for (size_t i = 0; i < spans->count;) {
		i = merge(spans, i, 0, &span);
		spread(bins, span.start_ns, span.end_ns, (double)(span.end_ns - span.start_ns));
	}
}

/* Begins and ends, by turns, since the start. */
static void print_spans(FILE *to, const struct load_spans *spans, uint64_t start_ns)
{
	struct load_span span;

	fprintf(to, ", \"busy_spans_us\": [");
	for (size_t i = 0; i < spans->count;) {
		fprintf(to, "%s", i > 0 ? "," : "");
		i = merge(spans, i, SPAN_GAP_NS, &span);
		fprintf(to, "%.1f,%.1f", ((double)span.start_ns - (double)start_ns) / 1e3,
			((double)span.end_ns - (double)start_ns) / 1e3);
	}
	fprintf(to, "]");
}

/* How much of each whole second was busy, and of all the time. */
static void print_busy(FILE *to, const struct bins *bins)
{
	size_t each = (size_t)(NS_PER_SECOND / bins->bin_ns);
	double all_ns = 0, second_ns = 0;
	const char *comma = "";

	fprintf(to, ", \"busy_seconds\": [");
	for (size_t i = 0; i < bins->count; i++) {
		all_ns += bins->value[i];
		second_ns += bins->value[i];
		if ((i + 1) % each != 0)
			continue;
		fprintf(to, "%s%.4f", comma, second_ns / NS_PER_SECOND);
		second_ns = 0;
		comma = ", ";
	}
	fprintf(to, "], \"busy\": %.4f", all_ns / (double)(bins->end_ns - bins->start_ns));
}

void load_spans_print(
	FILE *to, struct load_spans *spans, uint64_t start_ns, uint64_t end_ns, uint64_t bin_ns)
{
	struct bins bins = {start_ns, end_ns, bin_ns, 0, NULL};

	if (spans->count > 0)
		qsort(spans->span, spans->count, sizeof(*spans->span), compare_spans);
	bins.count = (size_t)((end_ns - start_ns + bin_ns - 1) / bin_ns);
	bins.value = calloc(bins.count + 1, sizeof(*bins.value));
	if (bins.value == NULL)
		exit(1);
	add_busy(&bins, spans);
	print_busy(to, &bins);
	fprintf(to, ", \"bin_ns\": %llu", (unsigned long long)bin_ns);
	print_array(to, "bin_busy_us", bins.value, bins.count, 1e-3);
	print_spans(to, spans, start_ns);
	clear(&bins);
	for (size_t i = 0; i < spans->count; i++)
		spread(&bins, spans->span[i].start_ns, spans->span[i].end_ns,
			spans->span[i].kernels);
	print_array(to, "bin_microkernels", bins.value, bins.count, 1e6);
	free(bins.value);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What devices and slices used in the last hour. */
#include "web/series.h"

#include <stdlib.h>
#include <string.h>

#define MIB	      (1u << 20)
#define RATE_LEAST_NS 500000000ull
#define NO_POINT      UINT16_MAX

static void free_series(struct series *series)
{
	free(series->key);
	free(series);
}

void series_begin(struct series_list *list)
{
	for (struct series *s = list->first; s; s = s->next)
		s->is_seen = false;
}

static void add_point(struct series *s)
{
	unsigned at = (s->first + s->count) % SERIES_POINTS;

	s->points[at] = (struct series_point){s->memory_mib,
		s->busy_weight_ns ? (uint16_t)(s->busy_ns / s->busy_weight_ns) : NO_POINT};
	if (s->count < SERIES_POINTS)
		s->count++;
	else
		s->first = (s->first + 1) % SERIES_POINTS;
	s->busy_ns = s->busy_weight_ns = 0;
}

void series_end(struct series_list *list, uint64_t now_ns)
{
	bool is_due = !list->point_ns || now_ns - list->point_ns >= SERIES_POINT_NS;

	for (struct series **at = &list->first, *s; (s = *at);) {
		if (s->is_seen) {
			if (is_due)
				add_point(s);
			at = &s->next;
			continue;
		}
		*at = s->next;
		list->count--;
		free_series(s);
	}
	if (is_due)
		list->point_ns = now_ns;
}

struct series *series_see(struct series_list *list, const char *key, bool *ret_is_new)
{
	struct series *s = list->first;

	while (s && strcmp(s->key, key) != 0)
		s = s->next;
	if (ret_is_new)
		*ret_is_new = !s;
	if (!s) {
		if (list->count >= SERIES_MOST)
			return NULL;
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->key = strdup(key);
		if (!s->key) {
			free(s);
			return NULL;
		}
		s->id = ++list->next_id;
		s->next = list->first;
		list->first = s;
		list->count++;
	}
	s->is_seen = true;
	return s;
}

/* A counter that is less than it was belongs to a region that was made anew. */
void series_count(struct series *s, uint64_t now_ns, const uint64_t *counters)
{
	uint64_t took_ns = now_ns - s->read_ns;

	if (s->read_ns && took_ns < RATE_LEAST_NS)
		return;
	s->has_rates = s->read_ns;
	for (unsigned i = 0; i < SERIES_COUNTERS; i++) {
		uint64_t more = counters[i] > s->counters[i] ? counters[i] - s->counters[i] : 0;

		s->rates[i] = s->has_rates ? (double)more / (double)took_ns : 0;
		s->counters[i] = counters[i];
	}
	s->read_ns = now_ns;
}

void series_set(struct series *s, uint64_t now_ns, uint64_t memory_bytes, int busy_permille)
{
	uint64_t mib = memory_bytes / MIB, weight_ns = s->set_ns ? now_ns - s->set_ns : 1;

	s->memory_mib = mib > UINT32_MAX ? UINT32_MAX : (uint32_t)mib;
	s->set_ns = now_ns;
	if (busy_permille == SERIES_UNKNOWN)
		return;
	if (busy_permille >= NO_POINT)
		busy_permille = NO_POINT - 1;
	s->busy_ns += weight_ns * (uint64_t)busy_permille;
	s->busy_weight_ns += weight_ns;
}

static const struct series_point *point(const struct series *s, unsigned i)
{
	return &s->points[(s->first + i) % SERIES_POINTS];
}

static void write_points(const struct series *s, FILE *out)
{
	fprintf(out, "{\"id\":%u,\"memory_mib\":[", s->id);
	for (unsigned i = 0; i < s->count; i++)
		fprintf(out, i ? ",%u" : "%u", point(s, i)->memory_mib);
	fputs("],\"busy_permille\":[", out);
	for (unsigned i = 0; i < s->count; i++) {
		if (i)
			putc(',', out);
		if (point(s, i)->busy_permille == NO_POINT)
			fputs("null", out);
		else
			fprintf(out, "%u", point(s, i)->busy_permille);
	}
	fputs("]}", out);
}

void series_write(const struct series_list *list, FILE *out)
{
	fprintf(out, "{\"version\":1,\"interval_s\":%llu,\"points_most\":%u,\"series\":[",
		SERIES_POINT_NS / 1000000000, SERIES_POINTS);
	for (const struct series *s = list->first; s; s = s->next) {
		write_points(s, out);
		if (s->next)
			putc(',', out);
	}
	fputs("]}\n", out);
}

void series_clear(struct series_list *list)
{
	for (struct series *s = list->first, *next; s; s = next) {
		next = s->next;
		free_series(s);
	}
	*list = (struct series_list){.count = 0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A device's compute time, for people and for programs. */
#include "cli/compute.h"

#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "policy/grant.h"

void compute_print_percent(bool is_known, double part, char *to, size_t size)
{
	/* A region is not to be trusted. */
	if (!is_known)
		snprintf(to, size, "-");
	else if (part >= 9.995)
		snprintf(to, size, ">999");
	else
		snprintf(to, size, "%.1f", 100 * (part > 0 ? part : 0));
}

void compute_print_granted(const struct share_compute *c, char *to, size_t size)
{
	double cores = c->cores_permille / 10.0, cap = c->cap_permille / 10.0;

	if (cores <= 0 && (cap <= 0 || cap >= 100))
		snprintf(to, size, "%s", "");
	else if (c->cap_permille == c->cores_permille)
		snprintf(to, size, "%g%%", cores);
	else
		snprintf(to, size, "%g-%g%%", cores, cap > 0 ? cap : 100);
}

const char *compute_state(const struct view_device *d)
{
	if (d->evicted_bytes)
		return "evicted";
	if (d->compute.state & REGION_COMPUTE_SUSPENDED)
		return "suspended";
	if (d->compute.state & REGION_COMPUTE_BLOCKED)
		return "blocked";
	return "";
}

void compute_print(const struct view_device *d, char *to, size_t size)
{
	char used[COMPUTE_TEXT_BYTES], granted[COMPUTE_TEXT_BYTES];
	const char *state = compute_state(d);

	compute_print_percent(d->compute.rates.is_known, d->compute.rates.busy, used, sizeof(used));
	compute_print_granted(&d->compute.granted, granted, sizeof(granted));
	if (d->is_pending) {
		char next[COMPUTE_TEXT_BYTES / 2];
		size_t length = strlen(granted);

		compute_print_granted(&d->share_compute, next, sizeof(next));
		if (strcmp(granted, next) != 0)
			snprintf(granted + length, sizeof(granted) - length, "->%s",
				*next ? next : "100%");
	}
	if (d->compute.is_mps)
		snprintf(to, size, "MPS %u%%%s%s", grant_mps_percent(&d->compute.granted),
			*state ? " " : "", state);
	else if (*granted)
		snprintf(to, size, "%s/%s%s%s", used, granted, *state ? " " : "", state);
	else if (d->compute.rates.is_known)
		snprintf(to, size, "%s%%%s%s", used, *state ? " " : "", state);
	else
		snprintf(to, size, "%s", *state ? state : "-");
}

static void put_decimal(const char *key, double value, bool is_known)
{
	json_key(key);
	if (is_known)
		printf("%.1f", value);
	else
		fputs("null", stdout);
	fputs(", ", stdout);
}

void compute_print_json(const struct view_device *d)
{
	const struct view_compute *c = &d->compute;
	const char *state = compute_state(d);

	json_key("compute");
	putchar('{');
	json_text("mode", c->is_mps ? "mps" : "time");
	put_decimal("cores_percent", c->granted.cores_permille / 10.0, c->granted.cores_permille);
	put_decimal("cap_percent", c->granted.cap_permille / 10.0, c->granted.cap_permille);
	json_number("weight", c->granted.weight ? c->granted.weight : SHARE_DEFAULT_WEIGHT, true);
	json_number("priority", c->priority, true);
	json_text("state", *state ? state : c->is_metered ? "metered" : "");
	json_key("has_time_slices");
	fputs(c->state & REGION_COMPUTE_TURNS ? "true, " : "false, ", stdout);
	json_number("busy_ns", c->busy_ns, c->is_metered);
	json_number("lent_ns", c->lent_ns, c->is_metered);
	json_number("budget_wait_ns", c->budget_wait_ns, c->is_metered);
	json_number("time_slice_wait_ns", c->turn_wait_ns, c->is_metered);
	json_number("launches", c->launches, c->is_metered);
	put_decimal("budget_wait_percent", 100 * c->rates.budget_wait, c->rates.is_known);
	put_decimal("time_slice_wait_percent", 100 * c->rates.turn_wait, c->rates.is_known);
	put_decimal("launches_per_s", c->rates.launches_per_s, c->rates.is_known);
	json_key("used_percent");
	if (c->rates.is_known)
		printf("%.1f}", 100 * c->rates.busy);
	else
		fputs("null}", stdout);
}

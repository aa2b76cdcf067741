/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of compute time, as options of commands. */
#include "cli/compute_limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/command.h"

static int read_percent(
	const char *option, const char *text, uint16_t *ret_permille, struct err *err)
{
	char number[16];
	size_t length = strlen(text);

	*ret_permille = 0;
	/* 30 or 30% */
	length -= length > 1 && text[length - 1] == '%';
	if (strcmp(text, "none") == 0)
		return 0;
	if ((size_t)snprintf(number, sizeof(number), "%.*s", (int)length, text) < sizeof(number) &&
		share_read_percent(number, ret_permille))
		return 0;
	return command_refuse(err,
		"%s '%s': a percentage from 0.1 to 100 is right, with at most one decimal, or none",
		option, text);
}

static int read_number(const char *option, const char *text, uint64_t least, uint64_t most,
	uint64_t *ret_value, struct err *err)
{
	if (parse_u64(text, most, ret_value) == 0 && *ret_value >= least)
		return 0;
	return command_refuse(err, "%s '%s': a whole number from %u to %u is right", option, text,
		(unsigned)least, (unsigned)most);
}

int compute_limits_read(
	int option, const char *text, struct compute_limits *limits, struct err *err)
{
	struct compute_limits t = *limits;
	uint64_t value = 0;
	int r = 0;

	switch (option) {
	case COMPUTE_LIMITS_CORES:
		t.has_cores = true;
		r = read_percent("--cores", text, &t.compute.cores_permille, err);
		break;
	case COMPUTE_LIMITS_CAP:
		t.has_cap = true;
		r = read_percent("--cap", text, &t.compute.cap_permille, err);
		break;
	case COMPUTE_LIMITS_WEIGHT:
		t.has_weight = true;
		r = read_number("--weight", text, 1, SHARE_MAX_WEIGHT, &value, err);
		t.compute.weight = (uint16_t)value;
		break;
	default:
		t.has_priority = true;
		r = read_number("--priority", text, 0, SHARE_MAX_PRIORITY, &value, err);
		t.priority = (uint8_t)value;
		break;
	}
	if (r == 0)
		*limits = t;
	return r;
}

int compute_limits_apply(
	const struct compute_limits *limits, struct share_compute *compute, struct err *err)
{
	struct share_compute c = *compute;
	bool is_hard = c.cap_permille == c.cores_permille;

	if (limits->has_cores) {
		c.cores_permille = limits->compute.cores_permille;
		if (is_hard)
			c.cap_permille = c.cores_permille;
	}
	if (limits->has_cap)
		c.cap_permille = limits->compute.cap_permille ? limits->compute.cap_permille
							      : SHARE_WHOLE_PERMILLE;
	if (limits->has_weight)
		c.weight = limits->compute.weight;
	/* No limit is written in one way. */
	if (c.cores_permille == 0 && c.cap_permille == SHARE_WHOLE_PERMILLE)
		c.cap_permille = 0;
	if (c.cap_permille && c.cap_permille < c.cores_permille)
		return err_set(err, EINVAL,
			"cores of %g%% are above the cap of %g%%; a --cap of at least the cores is "
			"right",
			c.cores_permille / 10.0, c.cap_permille / 10.0);
	*compute = c;
	return 0;
}

int compute_limits_apply_all(
	const struct compute_limits *limits, struct share *share, struct err *err)
{
	if (limits->has_priority)
		share->priority = limits->priority;
	for (unsigned i = 0; i < share->device_count; i++) {
		int r = compute_limits_apply(limits, &share->devices[i].compute, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a process may have, by all that speaks of it. */
#include "policy/grant.h"

#include <string.h>

uint64_t grant_environment_bytes(const struct options *options, int index)
{
	uint64_t bytes = options->memory_limit_bytes;

	if (index >= 0 && index < OPTIONS_DEVICES && options->memory_limit_of_bytes[index])
		bytes = options->memory_limit_of_bytes[index];
	return bytes ? bytes : SHARE_UNLIMITED;
}

struct share_compute grant_environment_compute(
	const struct options *options, int index, bool has_time_slices)
{
	struct share_compute compute = {.cores_permille = 0};
	unsigned percent = options->cores_percent;

	if (index >= 0 && index < OPTIONS_DEVICES && options->cores_of_percent[index])
		percent = options->cores_of_percent[index];
	if (percent == 0 || options->policy == OPTIONS_POLICY_DISABLE)
		return compute;
	compute.cores_permille = (uint16_t)(10 * percent);
	compute.cap_permille = options->policy == OPTIONS_POLICY_DEFAULT && has_time_slices
				       ? SHARE_WHOLE_PERMILLE
				       : compute.cores_permille;
	return compute;
}

/* 0 says nothing. */
static uint16_t lesser(uint16_t a, uint16_t b)
{
	return a && (a < b || b == 0) ? a : b;
}

bool grant_lower(struct share_compute *compute, const struct share_compute *by)
{
	const struct share_compute before = *compute;

	compute->cores_permille = lesser(before.cores_permille, by->cores_permille);
	compute->cap_permille = lesser(before.cap_permille, by->cap_permille);
	if (compute->cap_permille && compute->cores_permille > compute->cap_permille)
		compute->cores_permille = compute->cap_permille;
	if (by->weight)
		compute->weight = by->weight;
	return compute->cores_permille != before.cores_permille ||
	       compute->cap_permille != before.cap_permille;
}

void grant_bind(struct share_compute *asked, const struct share_compute *system)
{
	if (!system)
		return;
	if (!system->cores_permille) {
		asked->cap_permille = lesser(asked->cap_permille, asked->cores_permille);
		asked->cores_permille = 0;
	}
	if (asked->weight > (system->weight ? system->weight : SHARE_DEFAULT_WEIGHT))
		asked->weight = 0;
}

void grant_force(struct share_compute *compute, const struct options *options,
	const struct share_compute *environment)
{
	if (options->policy == OPTIONS_POLICY_FORCE && environment->cores_permille)
		compute->cap_permille = compute->cores_permille;
}

unsigned grant_burst_ms(
	const struct share *const shares[GRANT_SHARES], const struct options *options)
{
	uint16_t least_ms = 0;

	for (unsigned i = 0; i < GRANT_SHARES; i++)
		if (shares[i])
			least_ms = lesser(least_ms,
				shares[i]->burst_ms ? shares[i]->burst_ms : SHARE_DEFAULT_BURST_MS);
	if (!least_ms)
		least_ms = SHARE_DEFAULT_BURST_MS;
	return options->burst_ms < least_ms ? options->burst_ms : least_ms;
}

const char *grant_mps_pipe(const char *value)
{
	return value && *value ? value : GRANT_MPS_PIPE;
}

bool grant_is_client(const struct share *share, const char *mps_pipe)
{
	return *share->mps && strcmp(share->mps, mps_pipe) == 0;
}

unsigned grant_mps_percent(const struct share_compute *compute)
{
	return compute->cap_permille ? (compute->cap_permille + 9u) / 10 : 100;
}

const char *grant_turns_path(const struct share *const shares[GRANT_SHARES], const char *mps_pipe,
	const struct options *options)
{
	bool is_side_by_side = false;

	for (unsigned i = 0; i < GRANT_SHARES; i++) {
		if (!shares[i])
			continue;
		if (grant_is_client(shares[i], mps_pipe))
			is_side_by_side = true;
		else if (*shares[i]->turns)
			return shares[i]->turns;
	}
	return is_side_by_side ? NULL : options->turns_path;
}

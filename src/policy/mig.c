/* SPDX-License-Identifier: Apache-2.0 */
/* Which instance of a device in MIG mode a request gets. */
#include "policy/mig.h"

#define SLICES_MAX 32u

uint32_t mig_slices(struct mig_place place)
{
	if (!place.size || place.start + place.size > SLICES_MAX)
		return 0;
	return (uint32_t)(((UINT64_C(1) << place.size) - 1) << place.start);
}

static bool is_free(struct mig_place place, uint32_t taken)
{
	uint32_t slices = mig_slices(place);

	return slices && !(slices & taken);
}

static bool find_place(
	const struct mig_profile *profile, uint32_t taken, struct mig_place *ret_place)
{
	bool is_from_top = profile->slices == 1 || profile->slices == 3;
	bool was_found = false;

	for (size_t i = 0; i < profile->place_count; i++) {
		struct mig_place place = profile->places[i];

		if (!is_free(place, taken) ||
			(was_found && (place.start > ret_place->start) != is_from_top))
			continue;
		*ret_place = place;
		was_found = true;
	}
	return was_found;
}

bool mig_is_smaller(const struct mig_profile *a, const struct mig_profile *b)
{
	if (a->memory_mib != b->memory_mib)
		return a->memory_mib < b->memory_mib;
	return a->slices < b->slices;
}

bool mig_choose(const struct mig_profile *profiles, size_t count, uint32_t taken,
	int64_t memory_mib, struct mig_choice *ret_choice)
{
	struct mig_choice best = {0};

	for (size_t i = 0; i < count; i++) {
		struct mig_place place;

		if (profiles[i].memory_mib < memory_mib ||
			(best.profile && !mig_is_smaller(&profiles[i], best.profile)) ||
			!find_place(&profiles[i], taken, &place))
			continue;
		best = (struct mig_choice){&profiles[i], place};
	}
	*ret_choice = best;
	return best.profile;
}

int64_t mig_most_mib(const struct mig_profile *profiles, size_t count)
{
	int64_t most = 0;

	for (size_t i = 0; i < count; i++)
		if (profiles[i].memory_mib > most)
			most = profiles[i].memory_mib;
	return most;
}

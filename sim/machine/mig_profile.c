/* SPDX-License-Identifier: Apache-2.0 */
/* How cards can be cut into instances. */
#include <string.h>

#include "sim/machine/mig.h"

static const struct mig_profile profiles[] = {
#define PROFILE(...) {__VA_ARGS__},
#include "sim/machine/mig_profile.def"
};

#define PROFILE_COUNT (sizeof(profiles) / sizeof(profiles[0]))

const struct mig_profile *mig_profile_at(const struct board *board, unsigned int i)
{
	for (size_t row = 0; row < PROFILE_COUNT; row++)
		if (!strcmp(profiles[row].family, board->mig_family) && !i--)
			return &profiles[row];
	return NULL;
}

const struct mig_profile *mig_profile_of_kind(const struct board *board, unsigned int kind)
{
	const struct mig_profile *profile;

	for (unsigned int i = 0; (profile = mig_profile_at(board, i)); i++)
		if (profile->kind == kind)
			return profile;
	return NULL;
}

const struct mig_profile *mig_profile_of_id(const struct board *board, unsigned int id)
{
	const struct mig_profile *profile;

	for (unsigned int i = 0; (profile = mig_profile_at(board, i)); i++)
		if (profile->id == id)
			return profile;
	return NULL;
}

static bool is_with_media(const struct mig_profile *profile)
{
	return profile->slices == 1 && profile->media_engines;
}

unsigned int mig_profile_most(const struct mig_profile *profile)
{
	return is_with_media(profile) ? 1 : (unsigned int)__builtin_popcount(profile->starts);
}

/* What one slice has, and what is over only the whole instance has. */
unsigned int mig_sm_count(const struct mig_profile *profile, unsigned int slices)
{
	if (slices == profile->slices)
		return profile->sm_count;
	return profile->sm_count / profile->slices / 2 * 2 * slices;
}

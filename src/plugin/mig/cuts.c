/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU in mode mig can be cut. */
#include "plugin/mig/cuts.h"

#include <stdbool.h>
#include <string.h>

#include "base/log.h"

#define LOG_TOPIC LOG_PODS

/* By the first entry for its name. Without any list all of them, but for those with engines that are there once. */
static bool is_allowed(const struct config *config, const char *name, const char *profile)
{
	if (!config->profile_count)
		return !strchr(profile, '+');
	for (size_t i = 0; i < config->profile_count; i++)
		for (const char **model = config->profiles[i].models; *model; model++) {
			if (!strstr(name, *model))
				continue;
			for (const char **one = config->profiles[i].profiles; *one; one++)
				if (!strcmp(*one, profile))
					return true;
			return false;
		}
	return false;
}

static void add_profile(struct cuts *cuts, const struct partition_profile *from, unsigned most)
{
	struct mig_profile *to = &cuts->profiles[cuts->count++];

	*to = (struct mig_profile){.memory_mib = (int64_t)from->memory_mib,
		.cores = (from->multiprocessors * 100 + most - 1) / most,
		.slices = from->slices,
		.place_count = from->place_count};
	strcpy(to->name, from->name);
	for (unsigned i = 0; i < from->place_count; i++)
		to->places[i] = (struct mig_place){(uint8_t)from->start[i], (uint8_t)from->size};
	if (from->most > cuts->most)
		cuts->most = from->most;
}

void cuts_read(const struct config *config, const struct inventory_device *device,
	const struct partition_profiles *all, struct cuts *cuts)
{
	unsigned most = 1;

	for (unsigned i = 0; i < all->count; i++)
		if (all->at[i].multiprocessors > most)
			most = all->at[i].multiprocessors;
	for (unsigned i = 0; i < all->count; i++)
		if (strlen(all->at[i].name) < sizeof(cuts->profiles->name) &&
			cuts->count < CUTS_PROFILES &&
			is_allowed(config, device->name, all->at[i].name))
			add_profile(cuts, &all->at[i], most);
	if (!cuts->count)
		log_warn("a device in mode mig has no profile that migProfileAllowlist allows",
			STR("device", device->uuid), STR("name", device->name));
}

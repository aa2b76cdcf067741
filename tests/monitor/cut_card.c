/* SPDX-License-Identifier: Apache-2.0 */
/* cut_card MACHINE DEVICE PROFILE: the simulated card gets an instance with one part in it, whose UUID is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine/mig.h"

static const struct mig_profile *find_profile(const struct board *board, const char *name)
{
	const struct mig_profile *profile;

	for (unsigned i = 0; (profile = mig_profile_at(board, i)); i++)
		if (!strcmp(profile->name, name))
			return profile;
	return NULL;
}

int main(int argc, char **argv)
{
	struct machine *machine;
	const struct mig_profile *profile;
	char uuid[MACHINE_UUID_SIZE];
	unsigned id, compute;
	int device;

	if (argc != 4 || machine_open(argv[1], NULL, &machine, NULL, 0))
		return 1;
	device = atoi(argv[2]);
	profile = find_profile(machine_board(machine), argv[3]);
	if (!profile || mig_set_mode(machine, device, true) ||
		mig_create(machine, device, profile, -1, &id) ||
		mig_create_compute(machine, device, id, profile->slices, -1, &compute))
		return 1;
	mig_uuid_text(machine_board(machine), device, id, compute, uuid);
	puts(uuid);
	machine_close(machine);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu prepare: makes the folders that slices of several users share, as root. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "node/devices.h"
#include "node/root.h"
#include "node/slice.h"
#include "node/turn_folder.h"

const char help_prepare[] =
	"  --sim   for the simulated node's devices, as without it where there is no other\n"
	"\n"
	"For root, once after each start of the machine, when the driver is there: the folder for\n"
	"slices of root, and the folder for time slices with one in it for each device. Made by\n"
	"root, nobody can take them for himself. What another user has made in their place, or in\n"
	"that of a user's folder of slices in /tmp, is moved out of the way. `vgpu doctor "
	"--machine` shows how they are.\n";

static void tell_left(unsigned count)
{
	struct err told = ERR_NULL;

	(void)err_set(&told, E2BIG,
		"%u names /tmp/vgpu-UID of users whom this machine does not know stay taken: %u "
		"are "
		"given back at a time",
		count, ROOT_NAMES_OF_NOBODY);
	command_warn(&told);
}

/* As the other commands find it: where no device of NVIDIA's tells, the simulated node is meant. */
static int read_devices(bool is_sim, struct inventory *devices, struct err *err)
{
	const struct sites none = SITES_NULL;
	struct err told = ERR_NULL, ignored = ERR_NULL;
	int r = devices_read(is_sim, &none, devices, err);

	if (r < 0 || is_sim || devices->count)
		return r;
	if (devices_read(true, &none, devices, &ignored) == 0 && devices->count)
		(void)err_set(&told, ENODEV,
			"note: NVIDIA's library shows no device, so the folders for time slices "
			"are the simulated node's");
	else
		(void)err_set(&told, ENODEV,
			"note: no device was found, so there is a folder for time slices of none: "
			"run it again when the driver is there");
	command_warn(&told);
	return 0;
}

static int prepare(bool is_sim, struct err *err)
{
	_cleanup_free_ struct inventory *devices = calloc(1, sizeof(*devices));
	const char *named = getenv("VGPU_STATE");
	char root[SHARE_PATH_BYTES];
	_cleanup_fd_ int root_fd = -1;
	struct err second = ERR_NULL;
	unsigned left;
	int r, given;

	if (!devices)
		return err_set(err, ENOMEM, "no memory");
	/* A folder that a person has named may be any, as /tmp, and stays as it is. */
	r = named && *named ? 0 : slice_prepare_root(err);
	if (r == 0)
		r = slice_open_root(root, &root_fd, err);
	if (r < 0)
		return r;
	r = read_devices(is_sim, devices, err);
	if (r == 0)
		r = turn_folder_prepare(devices, err);
	/* Last, and in any case: a user can make that fail. */
	given = root_give_back_names(&left, r ? &second : err);
	if (left)
		tell_left(left);
	if (r && given)
		command_warn(&second);
	return r ? r : given;
}

int command_prepare(int argc, char **argv, int *ret_status, struct err *err)
{
	static const struct option options[] = {{"sim", no_argument, NULL, 's'}, {0}};
	bool is_sim = false;
	int option;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option != 's')
			return command_refuse_option(err, option, argv);
		is_sim = true;
	}
	if (optind < argc)
		return command_refuse(err, "prepare takes no arguments, not '%s'", argv[optind]);
	*ret_status = 0;
	if (geteuid() != 0)
		return err_set(err, EPERM, "prepare is for root, so that the folders are root's");
	return prepare(is_sim, err);
}

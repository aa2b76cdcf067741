/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu suspend and vgpu resume: keep a slice off its devices, and let it go on. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"
#include "cli/edit.h"
#include "cli/suspension.h"
#include "node/place.h"

const char help_suspend[] =
	"  --evict  move what its processes hold of the devices to the host's memory, too\n"
	"  --sim    by the simulated node's driver; needed for another user's slice alone\n"
	"\n"
	"Nothing new reaches the devices any more, within a tenth of a second: programs wait in\n"
	"the call that would bring it there. What has begun is done to its end. To evict takes a\n"
	"driver of version 570 or later, and free host memory; programs then wait in every call.\n"
	"Either the memory of all processes is moved, or that of none.\n";

const char help_resume[] =
	"  --sim    by the simulated node's driver; needed for another user's slice alone\n"
	"\n"
	"Brings back what was evicted, and takes the suspension away. Where a device has too\n"
	"little free memory for all of it, nothing comes back, and the slice stays suspended. A\n"
	"process that the driver cannot bring back has to be ended; the others come back, and go "
	"on\n"
	"when the slice is resumed again.\n";

struct request {
	const char *slice;
	bool is_evicting, is_sim;
};

static int read_request(int argc, char **argv, const struct option *options,
	struct request *ret_request, struct err *err)
{
	struct request request = {.slice = NULL};
	int option;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option == 'e')
			request.is_evicting = true;
		else if (option == 's')
			request.is_sim = true;
		else
			return command_refuse_option(err, option, argv);
	}
	if (optind == argc)
		return command_refuse(err, "%s needs a slice; `vgpu list` shows them", argv[0]);
	if (argc - optind > 1)
		return command_refuse(
			err, "%s takes one slice, not '%s' too", argv[0], argv[optind + 1]);
	request.slice = argv[optind];
	*ret_request = request;
	return 0;
}

/* The folder of the slice and the driver that moves its memory; *sim holds the paths. */
static int find(const struct request *request, char ret_folder[EDIT_FOLDER_BYTES],
	struct place_sim *sim, struct evict_libraries *ret_libraries, struct err *err)
{
	bool is_sim;
	int r = edit_find(request->slice, ret_folder, &is_sim, err);

	*ret_libraries = (struct evict_libraries){.cuda = NULL};
	if (r == 0 && (request->is_sim || is_sim)) {
		r = place_find_sim(sim, err);
		*ret_libraries = (struct evict_libraries){.cuda = sim->cuda, .nvml = sim->nvml};
	}
	return r;
}

int command_suspend(int argc, char **argv, int *ret_status, struct err *err)
{
	static const struct option options[] = {
		{"evict", no_argument, NULL, 'e'}, {"sim", no_argument, NULL, 's'}, {0}};
	char folder[EDIT_FOLDER_BYTES];
	struct request request = {0};
	struct evict_libraries libraries;
	struct place_sim sim;
	int r = read_request(argc, argv, options, &request, err);

	if (r)
		return r;
	r = find(&request, folder, &sim, &libraries, err);
	if (r == 0)
		r = suspension_begin(folder, request.slice, request.is_evicting, &libraries, err);
	*ret_status = 0;
	return r;
}

int command_resume(int argc, char **argv, int *ret_status, struct err *err)
{
	static const struct option options[] = {{"sim", no_argument, NULL, 's'}, {0}};
	char folder[EDIT_FOLDER_BYTES];
	struct request request = {0};
	struct evict_libraries libraries;
	struct place_sim sim;
	int r = read_request(argc, argv, options, &request, err);

	if (r)
		return r;
	r = find(&request, folder, &sim, &libraries, err);
	if (r == 0)
		r = suspension_end(folder, request.slice, &libraries, err);
	*ret_status = 0;
	return r;
}

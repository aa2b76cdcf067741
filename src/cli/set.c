/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu set: changes what a slice may have, while it runs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/compute_limits.h"
#include "cli/edit.h"
#include "cli/size.h"
#include "node/nvml_library.h"
#include "node/place.h"
#include "policy/device_name.h"
#include "region/snapshot.h"

const char help_set[] =
	"  --device DEVICE  one device of the slice, by index, UUID, or the beginning of its "
	"UUID;\n"
	"                   all of its devices where it is not given\n"
	"  --memory SIZE    device memory that the slice may hold on it; unlimited takes the "
	"quota\n"
	"                   away\n"
	"  --cores PERCENT  compute time that the slice is sure to get; none takes the limit away\n"
	"  --cap PERCENT    compute time that it never gets more than; it moves with the cores\n"
	"                   where the two are equal\n"
	"  --weight N       its part of time that no slice is sure of, 1 to 10000\n"
	"  --priority N     which slice goes first: 0 before 1, up to 9; on all devices\n"
	"  --sim            ask the simulated node for the device of an index\n"
	"\n"
	"The slice's processes keep to it within a tenth of a second. What is not named stays as\n"
	"it is. A quota below what the slice holds takes nothing away: it gets no more until it "
	"is\n"
	"below.\n";

struct request {
	const char *slice;
	const char *device;    /* NULL: all */
	uint64_t memory_bytes; /* 0: as it is; SHARE_UNLIMITED: no quota */
	struct compute_limits limits;
	bool is_sim;
};

static int read_option(int option, struct request *r, char **argv, struct err *err)
{
	if (compute_limits_is_option(option))
		return compute_limits_read(option, optarg, &r->limits, err);
	switch (option) {
	case 'm':
		return size_read_quota(optarg, &r->memory_bytes, err);
	case 'd':
		if (r->device)
			return command_refuse(err,
				"--device '%s': one device is set at a time; all are without it",
				optarg);
		r->device = optarg;
		return 0;
	case 's':
		r->is_sim = true;
		return 0;
	default:
		return command_refuse_option(err, option, argv);
	}
}

static int read_request(int argc, char **argv, struct request *ret_request, struct err *err)
{
	static const struct option options[] = {
		{"memory", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'},
		COMPUTE_LIMITS_OPTIONS,
		{"sim", no_argument, NULL, 's'},
		{0},
	};
	struct request request = {.memory_bytes = 0};
	int option, r;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		r = read_option(option, &request, argv, err);
		if (r)
			return r;
	}
	if (optind == argc)
		return command_refuse(err, "set needs a slice; like: vgpu set web --memory 4g");
	if (argc - optind > 1)
		return command_refuse(err, "set changes one slice, not '%s' too", argv[optind + 1]);
	if (request.memory_bytes == 0 && compute_limits_is_empty(&request.limits))
		return command_refuse(err,
			"set needs something to change: --memory, --cores, --cap, --weight or "
			"--priority");
	request.slice = argv[optind];
	*ret_request = request;
	return 0;
}

/* The line that text is the UUID of, or the beginning of no other's; NULL where there is none. */
static struct share_device *find_line(struct share *share, const char *text)
{
	struct share_device *found = NULL;
	unsigned matches = 0;

	for (unsigned i = 0; i < share->device_count && *text; i++) {
		struct share_device *d = &share->devices[i];

		if (device_name_is_same(d->uuid, text))
			return d;
		if (strncmp(d->uuid, text, strlen(text)) != 0)
			continue;
		found = d;
		matches++;
	}
	return matches == 1 ? found : NULL;
}

/* The device that was named, on this machine: for an index, and for one that is under the "*" line. */
static int look_up(const struct request *request, char ret_uuid[SHARE_UUID_BYTES], struct err *err)
{
	_cleanup_free_ struct inventory *there = calloc(1, sizeof(*there));
	const struct inventory_device *device;
	struct place_sim sim;
	int r = there ? 0 : err_set(err, ENOMEM, "no memory");

	if (r == 0 && request->is_sim)
		r = place_find_sim(&sim, err);
	if (r == 0)
		r = nvml_library_read_inventory(request->is_sim ? sim.nvml : NULL, there, err);
	if (r) {
		err_wrap(err, "device '%.80s' cannot be looked up", request->device);
		return r < 0 ? r : -ENODEV;
	}
	r = inventory_find(there, request->device, &device, err);
	if (r == 0)
		snprintf(ret_uuid, SHARE_UUID_BYTES, "%s", device->uuid);
	return r;
}

static int change_line(const struct request *request, struct share_device *line, struct err *err)
{
	if (request->memory_bytes)
		line->memory_bytes = request->memory_bytes;
	return compute_limits_apply(&request->limits, &line->compute, err);
}

static int change(const struct request *request, struct share *share, struct err *err)
{
	struct share_device *line;
	char uuid[SHARE_UUID_BYTES];
	int r = 0;

	if (request->limits.has_priority)
		share->priority = request->limits.priority;
	if (!request->device) {
		for (unsigned i = 0; i < share->device_count && r == 0; i++)
			r = change_line(request, &share->devices[i], err);
		return r;
	}
	line = find_line(share, request->device);
	if (!line) {
		r = look_up(request, uuid, err);
		if (r < 0)
			return r;
		r = edit_line(share, uuid, &line, err);
	}
	return r < 0 ? r : change_line(request, line, err);
}

/* A quota below what is held is no mistake, but worth a note. */
static void note_excess(const struct share *share)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));

	if (!s || !*share->region || snapshot_read(share->region, s) != 0)
		return;
	for (unsigned i = 0; i < s->device_count; i++) {
		uint64_t quota = share_memory_bytes(share, s->devices[i].uuid);
		char used_text[SIZE_TEXT_BYTES], quota_text[SIZE_TEXT_BYTES];
		struct err note = ERR_NULL;

		if (s->devices[i].used_bytes <= quota)
			continue;
		size_print(s->devices[i].used_bytes, used_text);
		size_print(quota, quota_text);
		err_set(&note, 0,
			"note: slice '%s' holds %s of device %.96s, above its quota of %s; it gets "
			"no "
			"more until it is below",
			share->slice, used_text, s->devices[i].uuid, quota_text);
		command_warn(&note);
	}
}

int command_set(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_(edit_end) struct edit edit = EDIT_NULL;
	struct request request = {0};
	char folder[EDIT_FOLDER_BYTES];
	int r = read_request(argc, argv, &request, err);

	if (r)
		return r;
	r = edit_find(request.slice, folder, err);
	if (r == 0)
		r = edit_begin(folder, request.slice, &edit, err);
	if (r == 0)
		r = change(&request, &edit.share, err);
	if (r == 0)
		r = edit_commit(&edit, err);
	if (r < 0)
		return r;
	if (request.memory_bytes)
		note_excess(&edit.share);
	*ret_status = 0;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu list: the slices of this machine. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/left_out.h"
#include "cli/mps.h"
#include "cli/show.h"
#include "node/devices.h"
#include "node/sites.h"
#include "node/slice.h"
#include "node/slice_metrics.h"

#define REGIONS_MAX 64 /* --region options */

const char help_list[] =
	"  --json         for programs: sizes in bytes, all processes and kinds\n"
	"  --prometheus   metrics as text, for the textfile folder of node_exporter\n"
	"  --processes    one row for each process\n"
	"  --all          also slices without a running process\n"
	"  --sim          ask the simulated node for the names of devices\n"
	"  --region PATH  only the slice with this accounting file; may be given several times\n"
	"\n"
	"COMPUTE is the part of the device's time that was used within the last tenth of a\n"
	"second, and what is granted: 12.3/30%, or 12.3/30-50% where more may be had when no\n"
	"other slice wants it. USED is what running processes hold, and USED FOR says what for.\n"
	"Of each user but root 256 are looked at, and a line says how many were not.\n"
	"A process of another PID namespace that cannot be seen from here, or of another user "
	"than\n"
	"the slice's, is shown in brackets, with the number that the slice's books have.\n";

struct request {
	const char *regions[REGIONS_MAX];
	unsigned region_count;
	bool is_json, is_prometheus, with_processes, is_all, is_sim;
};

struct views {
	struct view *view;
	size_t count;
};

static void cleanup_views(struct views *views)
{
	for (size_t i = 0; i < views->count; i++)
		view_clear(&views->view[i]);
	free(views->view);
}

static int read_option(int option, struct request *r, char **argv, struct err *err)
{
	switch (option) {
	case 'j':
		r->is_json = true;
		return 0;
	case 'm':
		r->is_prometheus = true;
		return 0;
	case 'p':
		r->with_processes = true;
		return 0;
	case 'a':
		r->is_all = true;
		return 0;
	case 's':
		r->is_sim = true;
		return 0;
	case 'r':
		if (r->region_count == REGIONS_MAX)
			return command_refuse(
				err, "--region '%s': at most %d can be given", optarg, REGIONS_MAX);
		r->regions[r->region_count++] = optarg;
		return 0;
	default:
		return command_refuse_option(err, option, argv);
	}
}

static int read_request(int argc, char **argv, struct request *ret_request, struct err *err)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"prometheus", no_argument, NULL, 'm'},
		{"processes", no_argument, NULL, 'p'},
		{"all", no_argument, NULL, 'a'},
		{"sim", no_argument, NULL, 's'},
		{"region", required_argument, NULL, 'r'},
		{0},
	};
	struct request request = {.region_count = 0};
	int option, r;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		r = read_option(option, &request, argv, err);
		if (r)
			return r;
	}
	if (optind < argc)
		return command_refuse(err,
			"list takes options only, not '%s'; to look at one file: --region PATH",
			argv[optind]);
	if (request.is_prometheus && (request.is_json || request.with_processes))
		return command_refuse(err, "--prometheus is a form of its own; without %s is right",
			request.is_json ? "--json" : "--processes");
	*ret_request = request;
	return 0;
}

/* Finds the sites; regions that were named and are not there are told, and counted. */
static int find_sites(
	const struct request *request, struct sites *sites, unsigned *ret_failures, struct err *err)
{
	unsigned failures = 0;

	if (request->region_count == 0) {
		slice_sweep();
		mps_sweep(NULL);
		return sites_find(sites, err);
	}
	for (unsigned i = 0; i < request->region_count; i++) {
		struct err failure = ERR_NULL;

		if (sites_add(sites, request->regions[i], &failure) == 0)
			continue;
		command_warn(&failure);
		failures++;
	}
	*ret_failures = failures;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct view *first = a, *second = b;
	int by_name = strcmp(first->name, second->name);

	return by_name ? by_name : strcmp(first->region, second->region);
}

/* Reads every site; broken ones are told and counted, and those that were guesses left out. */
static int read_views(const struct request *request, const struct sites *sites,
	const struct inventory *devices, struct views *views, struct left_out *left,
	unsigned *failures)
{
	views->view = calloc(sites->count + 1, sizeof(*views->view));
	if (!views->view)
		return -ENOMEM;
	for (size_t i = 0; i < sites->count; i++) {
		struct view *v = &views->view[views->count];
		struct err failure = ERR_NULL;
		int r = view_read(&sites->list[i], devices, v, &failure);

		if (r != 0) {
			if (!request->region_count && left_out_note(left, &sites->list[i], r))
				continue;
			if (!sites->list[i].is_guess) {
				command_warn(&failure);
				(*failures)++;
			}
			continue;
		}
		if (v->is_running || request->is_all || request->region_count)
			views->count++;
		else
			view_clear(v);
	}
	qsort(views->view, views->count, sizeof(*views->view), compare);
	return 0;
}

/* Short enough for a person not to notice, and some hundred times what is measured at once. */
#define MEASURE_NS UINT64_C(100000000)

static void write_metrics(
	const struct views *views, const struct sites *sites, const struct left_out *left)
{
	_cleanup_free_ const struct view **list = calloc(views->count + 1, sizeof(*list));

	for (size_t i = 0; list && i < views->count; i++)
		list[i] = &views->view[i];
	if (list)
		slice_metrics_write(stdout, list, NULL, views->count);
	left_out_write(stdout, sites, left);
}

static void show(const struct request *request, const struct views *views,
	const struct sites *sites, const struct left_out *left)
{
	if (request->is_prometheus)
		write_metrics(views, sites, left);
	else if (request->is_json)
		show_json(views->view, views->count);
	else if (views->count == 0)
		puts("There are no slices on this machine. To make one: vgpu run --memory 2g -- "
		     "PROGRAM");
	else
		show_table(views->view, views->count, request->with_processes);
}

int command_list(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_(sites_clear) struct sites sites = SITES_FEW;
	_cleanup_(cleanup_views) struct views views = {.count = 0};
	_cleanup_free_ struct inventory *devices = calloc(1, sizeof(*devices));
	struct left_out left = {.lease_count = 0};
	struct request request = {0};
	unsigned failures = 0;
	int r = read_request(argc, argv, &request, err);

	if (r)
		return r;
	if (!devices)
		return err_set(err, ENOMEM, "no memory");
	r = find_sites(&request, &sites, &failures, err);
	if (r == 0)
		r = devices_read(request.is_sim, &sites, devices, err);
	if (r < 0)
		return r;
	if (read_views(&request, &sites, devices, &views, &left, &failures) < 0)
		return err_set(err, ENOMEM, "no memory");
	if (!request.is_prometheus)
		view_measure(views.view, views.count, MEASURE_NS);
	if (views.count > 0 || !request.region_count)
		show(&request, &views, &sites, &left);
	left_out_tell(&sites, &left);
	/* A region that was named must be there; one that was found may be anything. */
	*ret_status = request.region_count && failures ? 1 : 0;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of vgpu doctor, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/compute.h"
#include "cli/doctor_limits.h"
#include "cli/doctor_show.h"
#include "cli/json.h"
#include "cli/show.h"
#include "cli/size.h"
#include "base/text.h"

static void put(const char *text)
{
	text_put(stdout, text);
}

static void put_line(const char *title, const char *text)
{
	printf("    %-13s", title);
	put(text);
	putchar('\n');
}

static void put_region(const struct inspected_region *region)
{
	printf("    %-13s", "region");
	put(region->path);
	printf(" on %s\n", region->file_system);
}

typedef void option_fn(const char *name, const char *value, unsigned index);

/* Every option that the process was given, those of a family one by one. */
static void visit_options(const struct inspection *seen, option_fn *visit)
{
	unsigned found = 0;
	char name[64];

	for (size_t i = 0; i < options_table_count; i++)
		for (unsigned k = 0; k < option_count(&options_table[i]); k++) {
			const char *value;

			option_name(&options_table[i], k, name, sizeof(name));
			value = inspect_option(seen, name);
			if (value)
				visit(name, value, found++);
		}
}

static void put_option(const char *name, const char *value, unsigned index)
{
	printf("    %-13s%s=", index ? "" : "options", name);
	put(value);
	putchar('\n');
}

static void put_libraries(const struct inspection *seen)
{
	put_line("library", *seen->library ? seen->library : "none");
	if (*seen->library)
		put_line("entry points", seen->preloaded_by
						 ? "by name, by dlsym, by cuGetProcAddress"
						 : "by dlsym and cuGetProcAddress at most");
	if (seen->preloaded_by)
		put_line("preload", seen->preloaded_by);
	put_line("driver", *seen->driver ? seen->driver : "not loaded");
}

static void put_mps(const struct patient *p)
{
	const char *percent = inspect_option(&p->seen, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");

	printf("    %-13s", "mps");
	put(percent ? percent : "100");
	fputs("% of the multiprocessors, by the daemon in ", stdout);
	put(limits_mps(p));
	puts(limits_mps_is_alive(p) ? ", which runs" : ", which does not run");
}

static void put_source(const char *from)
{
	if (!from)
		return;
	fputs(" from ", stdout);
	put(from);
}

static void put_limits(const struct patient *p)
{
	struct limit limits[SHARE_DEVICES];
	unsigned count = limits_find(p, limits), peers;
	const char *turns = limits_turns(p);

	for (unsigned i = 0; i < count; i++) {
		const struct limit *l = &limits[i];
		char memory[SIZE_TEXT_BYTES] = "none", compute[COMPUTE_TEXT_BYTES];

		if (l->memory_bytes != SHARE_UNLIMITED)
			size_print(l->memory_bytes, memory);
		compute_print_granted(&l->compute, compute, sizeof(compute));
		printf("    %-13s", i ? "" : "limits");
		put(strcmp(l->uuid, SHARE_ANY_DEVICE) ? l->uuid : "any device");
		printf(": memory %s", memory);
		put_source(l->memory_from);
		printf(", compute %s", *compute ? compute : "none");
		put_source(l->compute_from);
		putchar('\n');
	}
	if (limits_mps(p))
		put_mps(p);
	if (turns)
		put_line("time slices", turns);
	if (turns && limits_count_peers(p, &peers) == 0)
		printf("    %-13swith %u other slice%s just now\n", "", peers,
			peers == 1 ? "" : "s");
}

static void put_process(const struct patient *p)
{
	const struct inspection *seen = &p->seen;

	if (p->pid)
		printf("  process %d", p->pid);
	else
		printf("  process (%u)", p->process->own_pid);
	if (p->process) {
		putchar(' ');
		put(p->process->command);
	}
	puts(p->view		    ? ""
		: seen->is_readable ? " is in no slice"
				    : " is in no slice that is seen from here");
	if (seen->is_readable)
		put_libraries(seen);
	else
		put_line("library", "unknown: the process cannot be looked at from here");
	for (unsigned i = 0; i < INSPECT_SHARES; i++)
		if (seen->shares[i].path)
			put_line("share", seen->shares[i].path);
	if (seen->is_readable)
		put_region(&seen->region);
	visit_options(seen, put_option);
	if (seen->is_readable)
		put_limits(p);
	if (p->process && p->process->notes & REGION_NOTE_NVML)
		put_line("nvml", "tells what the driver gave to it");
	else if (p->process && p->process->notes & REGION_NOTE_NO_NVML)
		put_line("nvml", "has no figure for it: usage is what its calls took");
}

static void put_device(const struct view_device *device)
{
	char used[SIZE_TEXT_BYTES], quota[SIZE_TEXT_BYTES] = "none";
	char compute[COMPUTE_TEXT_BYTES];

	size_print(device->use.used_bytes, used);
	if (device->quota_bytes)
		size_print(device->quota_bytes, quota);
	fputs("  device ", stdout);
	put(device->uuid);
	printf("\n    quota %s, used %s; %" PRIu64 " refusals, %" PRIu64 " corrections\n", quota,
		used, device->refusal_count, device->drift_count);
	compute_print(device, compute, sizeof(compute));
	if (strcmp(compute, "-") != 0)
		printf("    compute %s%s\n", compute,
			device->compute.state & REGION_COMPUTE_TURNS ? ", in time slices" : "");
}

static void put_patients(const struct diagnosis *d, const struct view *v)
{
	for (size_t i = 0; i < d->patient_count; i++)
		if (d->patients[i].view == v)
			put_process(&d->patients[i]);
}

static void put_findings(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		fputs("  ", stdout);
		put(findings->text[i]);
		putchar('\n');
	}
}

void diagnosis_show_text(const struct diagnosis *d)
{
	for (size_t i = 0; i < d->view_count; i++) {
		char name[VIEW_NAME_BYTES];

		view_print_name(&d->views[i], name, sizeof(name));
		fputs("slice ", stdout);
		put(name);
		fputs("\n  accounting file ", stdout);
		put(d->views[i].region);
		putchar('\n');
		for (unsigned k = 0; k < d->views[i].device_count; k++)
			put_device(&d->views[i].devices[k]);
		put_patients(d, &d->views[i]);
	}
	put_patients(d, NULL);
	if (d->view_count + d->patient_count == 0)
		puts("There are no slices on this machine.");
	puts(d->problems.count ? "Problems:" : "No problems.");
	put_findings(&d->problems);
	if (d->notes.count)
		puts("Notes:");
	put_findings(&d->notes);
}

static void json_option(const char *name, const char *value, unsigned index)
{
	fputs(index ? ", " : "", stdout);
	json_key(name);
	json_string(value);
}

static void json_shares(const struct inspection *seen)
{
	const char *comma = "";

	json_key("shares");
	putchar('[');
	for (unsigned i = 0; i < INSPECT_SHARES; i++) {
		if (!seen->shares[i].path)
			continue;
		fputs(comma, stdout);
		json_string(seen->shares[i].path);
		comma = ", ";
	}
	fputs("], ", stdout);
}

/* null where its share names no daemon */
static void json_mps(const struct patient *p)
{
	const char *pipe = p->seen.is_readable ? limits_mps(p) : NULL, *percent;

	json_key("mps");
	if (!pipe) {
		fputs("null, ", stdout);
		return;
	}
	percent = inspect_option(&p->seen, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	putchar('{');
	json_text("percent", percent ? percent : "100");
	json_text("pipe_directory", pipe);
	printf("\"daemon_lives\": %s}, ", limits_mps_is_alive(p) ? "true" : "false");
}

static void json_limits(const struct patient *p)
{
	struct limit limits[SHARE_DEVICES];
	unsigned count = p->seen.is_readable ? limits_find(p, limits) : 0, peers = 0;
	const char *turns = p->seen.is_readable ? limits_turns(p) : NULL;
	bool has_peers = turns && limits_count_peers(p, &peers) == 0;

	json_key("limits");
	putchar('[');
	for (unsigned i = 0; i < count; i++) {
		const struct limit *l = &limits[i];

		fputs(i ? ", {" : "{", stdout);
		json_text("uuid", l->uuid);
		json_number("memory_bytes", l->memory_bytes, l->memory_bytes != SHARE_UNLIMITED);
		json_text("memory_from", l->memory_from ? l->memory_from : "");
		json_number("cores_permille", l->compute.cores_permille, l->compute.cores_permille);
		json_number("cap_permille", l->compute.cap_permille, l->compute.cap_permille);
		json_key("compute_from");
		if (l->compute_from)
			json_string(l->compute_from);
		else
			fputs("null", stdout);
		putchar('}');
	}
	fputs("], ", stdout);
	json_mps(p);
	json_text("time_slice_folder", turns ? turns : "");
	json_number("time_slice_peers", peers, has_peers);
}

static void json_process(const struct patient *p)
{
	uint64_t notes = p->process ? p->process->notes : 0;

	putchar('{');
	json_number("pid", (uint64_t)p->pid, p->pid != 0);
	json_text("command", p->process ? p->process->command : "");
	json_text("slice", p->view ? p->view->name : "");
	json_text("library", p->seen.library);
	json_shares(&p->seen);
	json_text("preloaded_by", p->seen.preloaded_by ? p->seen.preloaded_by : "");
	json_text("driver", p->seen.driver);
	json_text("region", p->seen.region.path);
	json_text("file_system", p->seen.is_readable ? p->seen.region.file_system : "");
	json_limits(p);
	json_text("nvml", notes & REGION_NOTE_NVML	? "figure"
			  : notes & REGION_NOTE_NO_NVML ? "none"
							: "");
	json_key("options");
	putchar('{');
	visit_options(&p->seen, json_option);
	fputs("}}", stdout);
}

static void json_view(const struct view *v)
{
	putchar('{');
	json_text("name", v->name);
	json_text("user", v->user);
	json_text("region", v->region);
	show_json_devices(v);
	putchar('}');
}

static void json_findings(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		fputs(i ? ",\n  " : "\n  ", stdout);
		json_string(findings->text[i]);
	}
}

void diagnosis_show_json(const struct diagnosis *d)
{
	fputs("{\"slices\": [", stdout);
	for (size_t i = 0; i < d->view_count; i++) {
		fputs(i ? ",\n  " : "\n  ", stdout);
		json_view(&d->views[i]);
	}
	fputs("],\n\"processes\": [", stdout);
	for (size_t i = 0; i < d->patient_count; i++) {
		fputs(i ? ",\n  " : "\n  ", stdout);
		json_process(&d->patients[i]);
	}
	fputs("],\n\"problems\": [", stdout);
	json_findings(&d->problems);
	fputs("],\n\"notes\": [", stdout);
	json_findings(&d->notes);
	fputs("]}\n", stdout);
}

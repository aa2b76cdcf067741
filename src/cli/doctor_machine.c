/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor --machine: whether the folders that users share are as they have to be. */
#include "cli/doctor_machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/json.h"
#include "base/text.h"
#include "node/machine.h"

struct counts {
	unsigned wrong, unseen;
};

static void show_counts(const struct counts *counts, bool is_prepared)
{
	const char *places = counts->unseen == 1 ? "place" : "places";

	if (!counts->wrong && !counts->unseen)
		puts("Nothing is wrong.");
	else if (!counts->wrong)
		printf("Nothing wrong was seen, but %u %s could not be looked at: root can.\n",
			counts->unseen, places);
	else if (counts->unseen)
		printf("%u %s could not be looked at: root can.\n", counts->unseen, places);
	if (!counts->wrong)
		return;
	printf("%u wrong", counts->wrong);
	if (is_prepared)
		fputs("; `vgpu prepare`, as root, makes right /run/vgpu, the folders for time "
		      "slices of "
		      "this machine's devices (of the simulated node's with --sim, where it has "
		      "others, too), and names in /tmp that other users have taken",
			stdout);
	puts(is_prepared ? ". The rest its owner, or root, has to change or remove."
			 : ". Its owner, or root, has to change or remove it.");
}

static void show_text(const struct machine *m, const struct counts *counts)
{
	bool is_prepared = false;

	for (unsigned i = 0; i < m->count; i++) {
		const struct machine_place *p = &m->list[i];

		is_prepared |= p->is_prepared && *p->wrong;
		text_put(stdout, p->path);
		if (p->more)
			printf("  %u more", p->more);
		if (*p->user)
			printf("  %s %04o", p->user, p->mode);
		printf("  %s%s", p->what, p->is_missed ? ": not there" : "");
		if (p->unseen)
			printf(": not looked at: %s", strerror(p->unseen));
		putchar('\n');
		if (!*p->wrong)
			continue;
		fputs("    ", stdout);
		text_put(stdout, p->wrong);
		putchar('\n');
	}
	show_counts(counts, is_prepared);
}

static void show_json(const struct machine *m)
{
	fputs("{\"places\": [", stdout);
	for (unsigned i = 0; i < m->count; i++) {
		const struct machine_place *p = &m->list[i];

		fputs(i ? ",\n  {" : "\n  {", stdout);
		json_text("path", p->path);
		json_text("what", p->what);
		json_text("user", p->user);
		json_number("mode", p->mode, *p->user);
		json_text("wrong", p->wrong);
		json_text("not_looked_at", p->unseen ? strerror(p->unseen) : "");
		json_number("more", p->more, p->more);
		printf("\"is_there\": %s}", p->is_missed ? "false" : "true");
	}
	puts("]}");
}

int doctor_machine(bool is_json, int *ret_status, struct err *err)
{
	_cleanup_(machine_clear) struct machine m = {.list = NULL};
	struct counts counts = {.wrong = 0};
	int r = machine_look(&m, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < m.count; i++) {
		const struct machine_place *p = &m.list[i];
		unsigned count = p->more ? p->more : 1;

		counts.wrong += *p->wrong ? count : 0;
		counts.unseen += p->unseen && !*p->wrong ? count : 0;
	}
	if (is_json)
		show_json(&m);
	else
		show_text(&m, &counts);
	*ret_status = counts.wrong ? 1 : 0;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor --machine: whether the folders that users share are as they have to be. */
#include "cli/doctor_machine.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/json.h"
#include "base/text.h"
#include "node/machine.h"

static void show_count(unsigned wrong_count, bool is_prepared)
{
	if (!wrong_count) {
		puts("Nothing is wrong.");
		return;
	}
	printf("%u wrong", wrong_count);
	if (is_prepared)
		fputs("; `vgpu prepare`, as root, makes right /run/vgpu, the folders for time "
		      "slices of "
		      "this machine's devices, and names in /tmp that other users have taken",
			stdout);
	puts(is_prepared ? ". The rest its owner, or root, has to change or remove."
			 : ". Its owner, or root, has to change or remove it.");
}

static void show_text(const struct machine *m, unsigned wrong_count)
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
		printf("  %s%s\n", p->what, p->is_missed ? ": not there" : "");
		if (!*p->wrong)
			continue;
		fputs("    ", stdout);
		text_put(stdout, p->wrong);
		putchar('\n');
	}
	show_count(wrong_count, is_prepared);
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
		json_number("more", p->more, p->more);
		printf("\"is_there\": %s}", p->is_missed ? "false" : "true");
	}
	puts("]}");
}

int doctor_machine(bool is_json, int *ret_status, struct err *err)
{
	_cleanup_(machine_clear) struct machine m = {.list = NULL};
	unsigned wrong_count = 0;
	int r = machine_look(&m, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < m.count; i++)
		wrong_count += !m.list[i].wrong[0] ? 0 : m.list[i].more ? m.list[i].more : 1;
	if (is_json)
		show_json(&m);
	else
		show_text(&m, wrong_count);
	*ret_status = wrong_count ? 1 : 0;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What was not looked at, of what users have made. */
#include "cli/left_out.h"

#include <errno.h>

#include "cli/command.h"
#include "node/user.h"

/* A user may make any number of them, and each takes time to read. */
static void tell_user(const struct sites_user *u)
{
	const char *of = u->space ? " of a container" : "";
	struct err told = ERR_NULL;
	char name[USER_NAME_BYTES];

	user_name(u->user, name);
	if (u->left_out) {
		(void)err_set(&told, E2BIG,
			"user %s%s has more than %u folders and regions where slices are: %u were "
			"not looked at",
			name, of, SITES_OF_USER, u->left_out);
		command_warn(&told);
	}
	if (u->has_more_lines) {
		(void)err_set(&told, E2BIG,
			"processes of user %s%s have more mappings than are looked at: regions may "
			"be among the others",
			name, of);
		command_warn(&told);
	}
}

void left_out_tell(const struct sites *sites)
{
	struct err told = ERR_NULL;
	unsigned strange = sites->strange_count;

	for (size_t i = 0; i < sites->user_count; i++)
		tell_user(&sites->users[i]);
	if (!strange)
		return;
	(void)err_set(&told, EMEDIUMTYPE,
		"%u mapping%s that may be a region's %s not looked at: %s on a file system that a "
		"user may have mounted and that might never answer",
		strange, strange == 1 ? "" : "s", strange == 1 ? "was" : "were",
		strange == 1 ? "it is" : "they are");
	command_warn(&told);
}

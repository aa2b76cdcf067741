/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_overlay VARIABLE PROGRAM [ARGUMENT...]: runs a test with a folder in that variable that is on an overlay, as all
 * of a plain container is.
 *
 * Exits with 77 where none can be mounted: as root it can, and else in a user namespace since Linux 5.11.
 */
#include <stdlib.h>

#include "tests/unit/overlay.h"

int main(int argc, char **argv)
{
	const char *parent = getenv("TMPDIR"), *why = "";
	char folder[256];

	if (argc < 3)
		return 2;
	snprintf(folder, sizeof(folder), "%s/overlay-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(folder))
		return 2;
	/* The mount is its own, so the folder below stays empty for all others. */
	if (!overlay_mount(folder, &why)) {
		fprintf(stderr, "skipped: %s here: %s\n", why, strerror(errno));
		rmdir(folder);
		return OVERLAY_SKIPPED;
	}
	if (setenv(argv[1], folder, 1) != 0)
		return 2;
	execvp(argv[2], argv + 2);
	return 127;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenant library on the host, from where containers get it: HOOK/libvgpu.so.VERSION and HOOK/ld.so.preload.
 *
 * A file is never written in place: a container that runs has the old one mounted, and keeps it. A version is of one
 * content: where another one is found under its name, the image's is right and takes its place, and containers that
 * start from then on have that.
 */
#pragma once

#include <stddef.h>

#include "base/bits.h"
#include "base/err.h"
#include "plugin/host/kept.h"

/* HOOK/libvgpu.so.VERSION */
void library_path(const char *hook, const char *version, char ret_path[CONTAINER_PATH_BYTES]);

/* Installs the library from `source`, a file of the plugin's image, and ld.so.preload. -errno with err set. */
int library_install(const char *state, const char *hook, const char *version, const char *source,
	struct err *err) MUST_CHECK;

/*
 * Whether both are there, and root's alone to write. Where they were not, the runtime would mount folders that it makes,
 * and the container would run without limits. -ENOENT or -EPERM with err set.
 */
int library_check(const char *hook, const char *version, struct err *err) MUST_CHECK;

/* Removes versions that library_install() has put there and that neither is `version` nor kept with a container. */
int library_collect(const char *state, const char *hook, const char *version,
	const struct kept_folder *folder, struct err *err) MUST_CHECK;

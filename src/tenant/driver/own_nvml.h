/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NVML tells the library what processes hold: the machine's, and not one that the program brings by its search path.
 *
 * It is the one that lies beside the attached driver, under the driver's own version where there is that: a container runtime mounts
 * both from the host. Only where none lies there, as beside the driver of CUDA's forward compatibility, it is what the process finds by
 * name. That one counts where nobody but root can have put it there, as the owner and the mode of the file and of each folder above it
 * say; or where this is not so of the driver either, as in a build tree: who brings the driver can bring anything.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/bits.h"

/*
 * Opens it, for a driver that has a function at that address; it stays loaded. NULL where there is none that counts, and where that
 * cannot be found out, as without descriptors or /proc. Context: any thread; takes the C library's lock for loading; keeps errno.
 */
void *own_nvml_open(const void *driver_function);

/* The file that is mapped at an address, as the kernel names it: without links. -ESRCH where none is. */
int own_nvml_find_file(const void *address, char ret_path[PATH_MAX]) MUST_CHECK;

/* Whether nobody but root may write to the file, and to the folders above it. The path, of PATH_MAX at most, is cut meanwhile. */
bool own_nvml_is_roots(char *path);

/* SPDX-License-Identifier: Apache-2.0 */
/* A way to the driver around the tenant library, so that one process can compare both. */
#pragma once

/* The function of the loaded library whose file is called so; NULL: there is none. */
void *direct_find(const char *library, const char *function);

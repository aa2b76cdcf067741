/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries of these tests have, for the programs that are linked with them, or load them. */
#pragma once

#define EXPORT __attribute__((visibility("default")))

/* How many blocks of 64 MiB it gets; below 0 where the driver does not work. */
int own_fill(void);

/* Prints what each lookup of the library leads to. */
typedef void own_ask_fn(void);

/* Says whether the driver is there, and how many blocks of 64 MiB it gives. */
void own_tell(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of those that write another size into a handle for other processes: processes make 1 GiB each, give out its handle and
 * end, one after the other, and another one opens it with a small size in the place of the memory's, wherever the handle has that.
 */
#pragma once

/* prepare: in the process that opens, before anything is made; or NULL. */
void forged_attack(void (*prepare)(void));

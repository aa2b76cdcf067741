/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of a library that are called as a function of the driver, and references that may lead nowhere.
 *
 * A library that loads the driver by itself often keeps what it found in such pointers. We come before it, so the dynamic linker takes our function
 * for the pointer, also for the library's own use: it would be written to as if it were one. The library, and who was linked with it, gets its variable
 * back. Functions of its own are not concerned: where no driver is loaded, ours call them.
 *
 * A program that may do without the driver refers to it weakly, and tests whether a function is there. We have some of them, and it would call
 * the others, which are not. So a weak reference that nobody but us answers is as it was without us: it leads nowhere.
 */
#pragma once

/* In all that the program began with, weak references too. Once, before main() begins. */
void pointers_give_back_at_start(void);

/* In the library that the address lies in, if it has a variable of that name. It asks for the driver's function, and has not stored it. */
void pointers_give_back(const void *caller, const char *symbol);

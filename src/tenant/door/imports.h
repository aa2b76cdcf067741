/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this library imports from the C library.
 *
 * The dynamic linker binds a name to the first object that has it: to a program's own read(), or to one in another library that is
 * preloaded. What a share says, which locks are held and what time it is would be that one's word
 * (docs/decisions/0044-own-imports.md).
 */
#pragma once

enum imports {
	IMPORTS_RIGHT, /* all were the C library's */
	IMPORTS_WERE_ANOTHERS, /* some were not, and are now: what was asked before may have been answered by another one */
	IMPORTS_ANOTHERS, /* some are not, and cannot be changed */
};

/*
 * Binds what is bound elsewhere to the C library's own, but for allocation. arguments, count and environment: as a constructor gets
 * them. Context: a constructor, once.
 */
enum imports imports_bind(int count, char **arguments, char **environment);

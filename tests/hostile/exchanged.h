/* SPDX-License-Identifier: Apache-2.0 */
/* Code that goes while a slow call of another thread uses it, and other code that gets its handle. */
#pragma once

#include "tests/hostile/hostile.h"

extern struct exchanged {
	CUcontext context;
	bool is_library; /* it is a library's kernel, and what gets its handle has 8 GiB of variables; else that has frames of 60,000 bytes */
	CUmodule module;
	CUlibrary library;
	CUfunction function;
	char small[HOSTILE_CODE_BYTES], large[HOSTILE_CODE_BYTES];
} exchanged;

/* The program has a context, and the small code, after some of it has ended, as where a program has run for a while. */
void exchanged_begin(bool is_library);

void exchanged_load(const char *text);
CUresult exchanged_unload(void);

/* What had this handle has gone: loads the large code until that has it. */
void exchanged_load_until(CUfunction before);

/* Looks what is held when the call has come back, within which exchange() runs in this thread. */
void exchanged_beside(void *(*use)(void *unused), void (*exchange)(void));

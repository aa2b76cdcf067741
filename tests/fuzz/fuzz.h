/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzzer calls, and how a target says that something is wrong. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's name. Returns 0; ends the process where the code under test is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define FUZZ_CHECK(claim)                                                                   \
	do {                                                                                \
		if (!(claim)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim); \
			abort();                                                            \
		}                                                                           \
	} while (0)

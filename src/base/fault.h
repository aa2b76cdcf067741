/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places where a test may stop or kill the process, or have our own memory run out. In a product build
 * they are nothing at all; with VGPU_FAULTS the test provides the functions.
 */
#pragma once

#ifdef VGPU_FAULTS
#include <stdbool.h>

void fault_hit(const char *place);
bool fault_is_out_of_memory(void);
#define FAULT(place)	      fault_hit(place)
#define FAULT_OUT_OF_MEMORY() fault_is_out_of_memory()
#else
#define FAULT(place)	      ((void)0)
#define FAULT_OUT_OF_MEMORY() 0
#endif

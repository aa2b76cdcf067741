/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places where a test may stop or kill the process. In a product build they are nothing at all;
 * with VGPU_FAULTS the test provides fault_hit().
 */
#pragma once

#ifdef VGPU_FAULTS
void fault_hit(const char *place);
#define FAULT(place) fault_hit(place)
#else
#define FAULT(place) ((void)0)
#endif

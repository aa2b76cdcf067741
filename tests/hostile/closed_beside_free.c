/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a range's descriptor keeps is freed while another descriptor is closed, which alone
 * kept created memory. Free memory rises, and not by what was freed.
 */
#include "tests/hostile/closed_within_free.h"

static void free_one(void)
{
	CUdeviceptr block;

	if (take_both(&block))
		free_watched(block);
}

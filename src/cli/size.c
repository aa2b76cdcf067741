/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes for people. */
#include "cli/size.h"

#include <stdio.h>

void size_print(uint64_t bytes, char *ret_text)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes;
	int unit = -1;

	if (bytes < 1024) {
		snprintf(ret_text, SIZE_TEXT_BYTES, "%u", (unsigned)bytes);
		return;
	}
	/* 1023.95 would be printed as 1024.0 */
	while (value >= 1023.95) {
		value /= 1024;
		unit++;
	}
	/* whole numbers, and what would look like one, without a point */
	if (value - (double)(uint64_t)(value + 0.05) < 0.05)
		snprintf(ret_text, SIZE_TEXT_BYTES, "%u%c", (unsigned)(value + 0.05), units[unit]);
	else
		snprintf(ret_text, SIZE_TEXT_BYTES, "%.1f%c", value, units[unit]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes for people and from them. */
#include "cli/size.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/command.h"
#include "policy/share.h"

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

int size_read_quota(const char *text, uint64_t *ret_bytes, struct err *err)
{
	uint64_t bytes = SHARE_UNLIMITED;
	int outcome = strcmp(text, "unlimited") == 0 ? 0 : parse_size(text, &bytes);

	if (outcome)
		return command_refuse(err, "--memory '%s': %s%s", text, parse_advice(outcome),
			outcome == PARSE_E_NOT_A_SIZE ? ", or unlimited" : "");
	if (bytes == 0)
		return command_refuse(err,
			"--memory '%s': a slice needs some memory; a size like 2g is right, or "
			"unlimited",
			text);
	*ret_bytes = bytes;
	return 0;
}

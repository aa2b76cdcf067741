/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes for people and from them. */
#include "cli/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/command.h"
#include "policy/share.h"

#define LEAST_BYTES (UINT64_C(1) << 20) /* less is a letter that was forgotten */

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

/* "50%" of a device. */
static bool read_part(const char *text, uint16_t *ret_permille)
{
	size_t length = strlen(text);
	char number[16];

	if (length < 2 || length > sizeof(number) || text[length - 1] != '%')
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)length - 1, text);
	return share_read_percent(number, ret_permille);
}

int size_read_quota(const char *text, struct size_quota *ret_quota, struct err *err)
{
	struct size_quota quota = {.bytes = SHARE_UNLIMITED};
	int outcome = 0;

	if (read_part(text, &quota.permille))
		quota.bytes = 0;
	else if (strcmp(text, "unlimited") != 0)
		outcome = parse_size(text, &quota.bytes);
	if (outcome && text[0] == '.')
		return command_refuse(
			err, "--memory '%s': a digit belongs before the point, like 0.5g", text);
	if (outcome && strchr(text, '%'))
		return command_refuse(err,
			"--memory '%s': 50%% of each device, or another part from 0.1%% to 100%% "
			"with at most one decimal, is right",
			text);
	if (outcome)
		return command_refuse(err, "--memory '%s': %s%s", text, parse_advice(outcome),
			outcome == PARSE_E_NOT_A_SIZE ? ", 50% of each device, or unlimited" : "");
	if (quota.bytes == 0 && !quota.permille)
		return command_refuse(err,
			"--memory '%s': a slice needs some memory; a size like 2g is right, or "
			"unlimited",
			text);
	if (quota.bytes && quota.bytes < LEAST_BYTES)
		return command_refuse(err,
			"--memory '%s': that is %" PRIu64
			" byte%s, in which no program can run; a size like 2g is right",
			text, quota.bytes, quota.bytes == 1 ? "" : "s");
	*ret_quota = quota;
	return 0;
}

int size_of_quota(const struct size_quota *quota, const char *uuid, uint64_t total_bytes,
	uint64_t *ret_bytes, struct err *err)
{
	if (!quota->permille) {
		*ret_bytes = quota->bytes;
		return 0;
	}
	if (total_bytes == 0)
		return err_set(err, ENODEV,
			"--memory %g%%: nothing tells how much memory device %.96s has; a size "
			"like 2g is right",
			quota->permille / 10.0, uuid);
	*ret_bytes =
		(uint64_t)((unsigned __int128)total_bytes * quota->permille / SHARE_WHOLE_PERMILLE);
	return 0;
}

void size_note_excess(uint64_t bytes, const struct inventory_device *device)
{
	char quota[SIZE_TEXT_BYTES], total[SIZE_TEXT_BYTES];
	struct err note = ERR_NULL;

	if (device->total_bytes == 0 || bytes == SHARE_UNLIMITED || bytes <= device->total_bytes)
		return;
	size_print(bytes, quota);
	size_print(device->total_bytes, total);
	err_set(&note, 0, "note: %s is more than device %u has (%s), so it limits nothing there",
		quota, device->index, total);
	command_warn(&note);
}

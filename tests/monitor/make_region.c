/* SPDX-License-Identifier: Apache-2.0 */
/* make_region PATH UUID: a slice with 64 MiB of 1 GiB, until standard input ends. */
#include <stdint.h>
#include <stdio.h>

#include "base/bits.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"

#define MIB (UINT64_C(1) << 20)

int main(int argc, char **argv)
{
	struct region region;
	unsigned slot, device;

	if (argc != 3 || region_open(argv[1], &region) || slot_claim(&region, &slot) ||
		region_device(&region, argv[2], &device) ||
		ledger_charge(region.file, slot, device, ledger_units(64 * MIB), LEDGER_NO_LIMIT))
		return 1;
	region.file->hami.limit_bytes[device] = 1024 * MIB;
	ledger_note(region.file, slot, device, CHARGE_PLAIN, (int64_t)(64 * MIB));
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}

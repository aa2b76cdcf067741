/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel that does not end. */
#include "tests/hostile/served.h"

static void attack(void)
{
	served_begin();
	served_launch(served_kernel(), NULL, 3600000 * MS);
	for (;;)
		served_sleep(1000 * MS);
}

int main(void)
{
	return served_beside_main(attack);
}

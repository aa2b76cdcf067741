/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations on the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/tool/number.h"

int number_parse(const char *text, uint64_t *ret_value)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int number_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	value = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name)) {
			/* A day: nobody waits longer, and the product stays far from overflow. */
			if (value * units[i].ns > 86400e9)
				return -EINVAL;
			*ret_ns = (uint64_t)(value * units[i].ns + 0.5);
			return 0;
		}
	return -EINVAL;
}

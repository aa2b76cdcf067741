/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says of NVIDIA's Multi-Process Service. */
#include "sim/machine/mps_client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t mps_client_find_server(void)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[4096];
	struct stat st;

	if (!folder || !*folder ||
		(size_t)snprintf(path, sizeof(path), "%s/control", folder) >= sizeof(path) ||
		stat(path, &st) != 0)
		return 0;
	if (S_ISFIFO(st.st_mode)) {
		/* Of a daemon that was killed the name is left, and nobody who reads. */
		int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0)
			return 0;
		close(fd);
	}
	/* The top bit tells processes that are nobody's clients. */
	return (((uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino) & INT64_MAX) | 1;
}

uint32_t mps_client_read_percent(void)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	double percent = text ? strtod(text, NULL) : 0;

	if (!(percent > 0 && percent < 100))
		return 100;
	return percent < 1 ? 1 : (uint32_t)percent;
}

static uint64_t unit_bytes(const char *unit)
{
	switch (*unit) {
	case 'K':
	case 'k':
		return UINT64_C(1) << 10;
	case 'M':
	case 'm':
		return UINT64_C(1) << 20;
	case 'G':
	case 'g':
		return UINT64_C(1) << 30;
	default:
		return 1;
	}
}

uint64_t mps_client_read_limit_bytes(int ordinal)
{
	const char *p = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	uint64_t limit = 0;

	while (p && *p) {
		char *end;
		long device = strtol(p, &end, 10);

		if (end != p && *end == '=' && device == ordinal) {
			char *unit;
			unsigned long long count = strtoull(end + 1, &unit, 10);

			if (count > 0 && count <= UINT64_MAX / unit_bytes(unit))
				limit = count * unit_bytes(unit);
		}
		p += strcspn(p, ",;");
		p += *p != '\0';
	}
	return limit;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark on an open file.
 *
 * An id is an offset of 63 bits: eight that say that the lock is a mark, 33 random ones, one for what it is of, and 21
 * zeroes, the room for the length of the lock, so that two marks of different ids never overlap.
 */
#include "base/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/scratch.h"

#define MARK_SIGN    (UINT64_C(0x56) << 55)
#define SIGN_BITS    (UINT64_C(0xff) << 55)
#define LENGTH_BITS  ((UINT64_C(1) << 21) - 1)
#define POOL_BIT     (UINT64_C(1) << 21)
#define FDINFO_BYTES 4096 /* at most, of a file's fdinfo */
#define RANDOM_BITS  (~(SIGN_BITS | POOL_BIT | LENGTH_BITS) & INT64_MAX)

uint64_t mark_random(void)
{
	uint64_t random;

#ifdef SYS_getrandom
	if (syscall(SYS_getrandom, &random, sizeof(random), 1 /* never wait */) ==
		(long)sizeof(random))
		return random;
#endif
	/* Unique enough where randomness is not to be had: who, and when. */
	return hash_u64(clock_now_ns() ^ (uint64_t)getpid() << 40);
}

uint64_t mark_new_id(enum mark_of of)
{
	return MARK_SIGN | (of == MARK_OF_POOL ? POOL_BIT : 0) | (mark_random() & RANDOM_BITS);
}

enum mark_of mark_of(uint64_t id)
{
	return id & POOL_BIT ? MARK_OF_POOL : MARK_OF_MEMORY;
}

int mark_set(int fd, struct mark mark)
{
	if (mark.steps > MARK_STEPS_MAX)
		return -EINVAL;
	return file_share_range(fd, (int64_t)mark.id, (int64_t)mark.steps + 1);
}

/* The decimal number that ends before `end`, where *ret_start is its first digit. */
static uint64_t number_before(const char *line, const char *end, const char **ret_start)
{
	uint64_t value = 0, scale = 1;

	while (end > line && end[-1] >= '0' && end[-1] <= '9') {
		value += (uint64_t)(*--end - '0') * scale;
		scale *= 10;
	}
	*ret_start = end;
	return value;
}

/* One line of /proc/self/fdinfo, "lock: 1: OFDLCK ADVISORY READ -1 00:05:9 START END". */
static bool read_line(const char *line, struct mark *ret_mark)
{
	const char *at = line + strlen(line);
	uint64_t start, end;

	if (strncmp(line, "lock:", 5) != 0 || !strstr(line, "OFDLCK") || !strstr(line, "READ"))
		return false;
	end = number_before(line, at, &at);
	if (at == line || at[-1] != ' ')
		return false;
	start = number_before(line, at - 1, &at);
	if ((start & SIGN_BITS) != MARK_SIGN || (start & LENGTH_BITS) || end < start ||
		end - start > MARK_STEPS_MAX)
		return false;
	*ret_mark = (struct mark){.id = start, .steps = (uint32_t)(end - start)};
	return true;
}

int mark_get(int fd, struct mark *ret_mark)
{
	SCRATCH_ARRAY(char, text, FDINFO_BYTES);
	char *line, *rest = NULL, path[48];
	size_t length;
	int r;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	r = file_read(path, text, FDINFO_BYTES, &length);
	if (r < 0)
		return r;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (read_line(line, ret_mark))
			return 0;
	return -ENOENT;
}

int mark_is_alive(int fd, uint64_t id, bool *ret_is_alive)
{
	return file_byte_is_locked(fd, (int64_t)id, ret_is_alive);
}
